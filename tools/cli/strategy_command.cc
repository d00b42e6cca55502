#include "tools/cli/strategy_command.h"

#include <fmt/format.h>

#include "reshard/strategy_files.h"
#include "tools/cli/filter_warning.h"
#include "tools/cli/messages.h"
#include "tools/cli/strategy_report.h"
#include "tools/cli/text_format.h"

namespace reshard {

StrategyShowCommand::StrategyShowCommand(CLI::App& parent)
    : Command(parent, "show", "Print the layouts of a strategy",
              {"reshard strategy show s8.ckpt",
               "reshard strategy show stages/ --filter '*.attention.*' --json"}) {
  AddPositional(app(), "FILE", path_, "Strategy file, or folder of stage files");
  app()
      .add_option("--filter", filter_, "Only parameters whose names match a glob pattern")
      ->type_name("GLOB");
}

UsedPaths StrategyShowCommand::Paths() const { return {.files = {path_}}; }

int StrategyShowCommand::Run() {
  const Result<StrategySummary> strategy = ReadStrategy(path_);
  if (!strategy.ok()) return Fail(strategy.status());
  if (!quiet()) PrintNotes(strategy->notes);
  std::vector<std::string> warnings;
  if (!filter_.empty() && !AnyLayoutMatches(*strategy, filter_)) {
    warnings.push_back(FilterWarning(filter_));
  }
  PrintWarnings(warnings);
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document.update(StrategyAsJson(*strategy, filter_));
    document["warnings"] = warnings;
    PrintData(ToJsonText(document) + '\n');
  } else {
    PrintData(StrategyAsText(*strategy, filter_, verbose()));
  }
  return 0;
}

StrategyMergeCommand::StrategyMergeCommand(CLI::App& parent)
    : Command(parent, "merge", "Merge the strategy files of pipeline stages into one",
              {"reshard strategy merge stages/ s8.ckpt"}) {
  AddPositional(app(), "DIR", folder_, "Folder with one strategy file for each stage");
  AddPositional(app(), "OUT", output_, "File to write");
  app().add_flag("--force", force_, "Replace OUT when it exists");
}

UsedPaths StrategyMergeCommand::Paths() const { return {.files = {folder_}, .outputs = {output_}}; }

int StrategyMergeCommand::Run() {
  const Result<StrategyMergeReport> report = MergeStrategies(folder_, output_, force_);
  if (!report.ok()) return Fail(report.status());
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document["output"] = output_;
    document["stages"] = report->stages;
    document["bytes"] = report->bytes;
    document["notes"] = report->notes;
    PrintData(ToJsonText(document) + '\n');
  }
  if (!quiet()) {
    PrintNotes(report->notes);
    PrintWords(fmt::format("{}: {}, {}", output_,
                           FormatCount(static_cast<uint64_t>(report->stages), "stage"),
                           FormatBytes(report->bytes)));
  }
  return 0;
}

}  // namespace reshard
