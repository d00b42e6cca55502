#include "tools/cli/strategy_make_command.h"

#include "tools/cli/messages.h"
#include "tools/cli/written_strategy.h"

namespace reshard {

StrategyMakeCommand::StrategyMakeCommand(CLI::App& parent)
    : Command(parent, "make", "Write a strategy from a specification, without a network",
              {"reshard strategy make spec.json s56.ckpt --from full.ckpt",
               "reshard strategy make spec.json s56.json"}) {
  AddPositional(app(), "SPEC", options_.spec, "Device count, cuts by name pattern (JSON)");
  AddPositional(app(), "OUT", options_.output,
                "File to write: JSON if it ends in .json, else protobuf");
  app()
      .add_option("--from", options_.checkpoint,
                  "Checkpoint of full tensors, for names that match patterns, and their shapes")
      ->type_name("CKPT");
  app().add_flag("--force", options_.force, "Replace OUT when it exists");
}

UsedPaths StrategyMakeCommand::Paths() const {
  return {.files = {options_.spec, options_.checkpoint}, .outputs = {options_.output}};
}

int StrategyMakeCommand::Run() {
  const Result<MakeStrategyReport> report = MakeStrategy(options_);
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    AddWrittenStrategy(options_.output, *report, document);
    document["notes"] = report->notes;
    PrintData(ToJsonText(document) + '\n');
  }
  if (!quiet()) {
    PrintNotes(report->notes);
    PrintWords(WrittenStrategyText(options_.output, *report));
  }
  return 0;
}

}  // namespace reshard
