#include "tools/cli/strategy_infer_command.h"

#include "tools/cli/messages.h"
#include "tools/cli/stoppable_call.h"
#include "tools/cli/written_strategy.h"

namespace reshard {

StrategyInferCommand::StrategyInferCommand(CLI::App& parent)
    : Command(parent, "infer", "Write a lost strategy again, from shards and full tensors",
              {"reshard strategy infer ckpt_8 s8.ckpt --reference full.ckpt"}) {
  AddPositional(app(), "SRC", options_.source, "Folder with rank_N/*.ckpt of all ranks");
  AddPositional(app(), "OUT", options_.output,
                "File to write: JSON if it ends in .json, else protobuf");
  app()
      .add_option("--reference", options_.reference,
                  "Checkpoint of full tensors, best of the same values")
      ->required()
      ->type_name("CKPT");
  app().add_flag("--force", options_.force, "Replace OUT when it exists");
}

UsedPaths StrategyInferCommand::Paths() const {
  return {.checkpoints = {options_.source, options_.reference}, .outputs = {options_.output}};
}

int StrategyInferCommand::Run() {
  const Result<InferStrategyReport> report =
      CallStoppable(options_, progress_style(), InferStrategy);
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    AddWrittenStrategy(options_.output, *report, document);
    PrintData(ToJsonText(document) + '\n');
  }
  if (!quiet()) PrintWords(WrittenStrategyText(options_.output, *report));
  return 0;
}

}  // namespace reshard
