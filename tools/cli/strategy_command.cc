#include "tools/cli/commands.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "reshard/strategy.h"
#include "src/frontend/parameter_map.h"
#include "tools/cli/command_table.h"
#include "tools/cli/messages.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/strategy_report.h"
#include "tools/cli/unknown_words.h"
#include "tools/page/map_drawing.h"
#include "tools/page/text_format.h"

namespace reshard {

StrategyShowCommand::StrategyShowCommand(CLI::App& parent)
    : Command(parent, "show", "Print the layouts of a strategy",
              {"reshard strategy show s8.ckpt",
               "reshard strategy show stages/ --include '*.attention.*' --json",
               "reshard strategy show s8.ckpt --map lm_head.weight --dst-strategy s4.ckpt"}) {
  AddPositional(app(), "FILE", path_, "Strategy file, or folder of stage files");
  table_.AddTo(app(), kShowStrategyCall, "Options");
  app().add_flag("--long", long_,
                 "List every parameter, or draw every box; without it, equal ones share a line");
  CLI::Option* const map =
      app()
          .add_option("--map", mapped_, "Draw which rank holds which box of this parameter")
          ->type_name("PARAM")
          ->excludes(FindOption(app(), "--include"))
          ->excludes(FindOption(app(), "--exclude"));
  app()
      .add_option("--dst-strategy", target_strategy_,
                  "Draw the boxes after a conversion to this strategy, too")
      ->type_name("D")
      ->needs(map);
}

int StrategyShowCommand::Run() {
  if (const Status given = table_.ApplyTo(PartsOf(filter_)); !given.ok()) return Fail(given);
  const Result<Strategy> strategy = ReadStrategy(path_);
  if (!strategy.ok()) return Fail(strategy.status());
  if (!quiet()) PrintNotes(strategy->notes());
  if (FindOption(app(), "--map")->count() > 0) return ShowMap(*strategy);
  std::vector<Warning> warnings;
  const ShownStrategy shown = ShownOf(*strategy, filter_);
  if (filter_.given() && shown.parameters.empty()) {
    warnings.push_back(filter_.NothingTaken());
  }
  PrintWarnings(warnings);
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document.update(AsJson(shown));
    nlohmann::ordered_json& list = document["warnings"] = nlohmann::ordered_json::array();
    for (const Warning& warning : warnings) list.push_back(AsJson(warning));
    PrintData(ToJsonText(document) + '\n');
  } else {
    PrintData(StrategyAsText(shown, {.every_parameter = long_, .every_field = verbose()}));
  }
  return 0;
}

int StrategyShowCommand::ShowMap(const Strategy& strategy) {
  ParameterMap map{.name = mapped_};
  std::set<std::string> names;
  const auto add = [&](const Strategy& side) -> Result<MappedStrategy> {
    for (const Strategy::Stage& stage : side.stages()) {
      for (const auto [name, layout] : stage) names.emplace(name);
    }
    return MapOf(side, mapped_);
  };
  Result<MappedStrategy> before = add(strategy);
  if (!before.ok()) return Fail(before.status());
  map.before = *std::move(before);
  if (!target_strategy_.empty()) {
    const Result<Strategy> target = ReadStrategy(target_strategy_);
    if (!target.ok()) return Fail(target.status());
    if (!quiet()) PrintNotes(target->notes());
    Result<MappedStrategy> after = add(*target);
    if (!after.ok()) return Fail(after.status());
    map.after = *std::move(after);
  }
  if (map.before.stages.empty() && (!map.after || map.after->stages.empty())) {
    return Fail(NotFoundError(
        fmt::format("the strategy has no parameter \"{}\"; {}", PrintableName(mapped_),
                    NamesMeant(mapped_, {names.begin(), names.end()}, "reshard strategy show"))));
  }
  if (json()) {
    nlohmann::ordered_json document = JsonDocument();
    document.update(AsJson(map));
    PrintData(ToJsonText(document) + '\n');
  } else {
    PrintData(DrawMap(map, long_));
  }
  return 0;
}

StrategyMergeCommand::StrategyMergeCommand(CLI::App& parent)
    : Command(parent, "merge", "Merge the strategy files of pipeline stages into one",
              {"reshard strategy merge stages/ s8.ckpt"}) {
  AddPositional(app(), "DIR", folder_, "Folder with one strategy file for each stage");
  AddPositional(app(), "OUT", output_, "File to write");
  table_.AddTo(app(), kMergeStrategiesCall);
}

int StrategyMergeCommand::Run() {
  bool force = false;
  if (const Status given = table_.ApplyTo({.force = &force}); !given.ok()) return Fail(given);
  const Result<StrategyReport> report = MergeStrategies(folder_, output_, force);
  if (!report.ok()) return Fail(report.status());
  if (json()) PrintReport(*report, {.place = output_});
  if (!quiet()) {
    PrintNotes(report->notes);
    PrintWords(fmt::format("{}: {}, {}", output_,
                           FormatCount(static_cast<uint64_t>(report->stages), "stage"),
                           FormatBytes(report->bytes)));
  }
  return 0;
}

StrategyConvertCommand::StrategyConvertCommand(CLI::App& parent)
    : Command(parent, "convert", "Convert a strategy from protobuf to JSON, or back",
              {"reshard strategy convert s8.ckpt s8.json",
               "reshard strategy convert stages/ merged.json",
               "reshard strategy convert s8.ckpt renamed.ckpt --rename names.json"}) {
  AddPositional(app(), "IN", options_.input, "Strategy file, or folder of stage files");
  AddPositional(app(), "OUT", options_.output,
                "File to write: JSON if it ends in .json, else protobuf");
  table_.AddTo(app(), kConvertStrategyCall);
}

int StrategyConvertCommand::Run() {
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  const auto& [input, output, renames, force] = options_;
  const Result<StrategyReport> report = ConvertStrategyFile(input, output, renames, force);
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) PrintReport(*report, {.place = options_.output});
  if (!quiet()) {
    PrintNotes(report->notes);
    PrintWords(fmt::format("{}: {}, {}", options_.output, FormatCount(report->layouts, "layout"),
                           FormatBytes(report->bytes)));
  }
  return 0;
}

StrategyInferCommand::StrategyInferCommand(CLI::App& parent)
    : Command(parent, "infer", "Recover a lost strategy from shards and a full checkpoint",
              {"reshard strategy infer ckpt_8 s8.ckpt --reference full.ckpt"}) {
  AddPositional(app(), "SRC", options_.source,
                "Folder with rank_N/*.ckpt or *.safetensors of all ranks");
  AddPositional(app(), "OUT", options_.output,
                "File to write: JSON if it ends in .json, else protobuf");
  table_.AddTo(app(), kInferStrategyCall);
  AddJsonLinesOption();
}

int StrategyInferCommand::Run() {
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  const Result<StrategyReport> report =
      CallStoppable(options_, progress_style(), [](const StrategyInference& it) {
        return InferStrategy(it.source, it.reference, it.output, it.force, it.run);
      });
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) PrintReport(*report, {.place = options_.output});
  if (!quiet()) PrintWords(WrittenStrategyText(options_.output, *report));
  return 0;
}

StrategyMakeCommand::StrategyMakeCommand(CLI::App& parent)
    : Command(
          parent, "make", "Write a strategy for a new cluster, without a network",
          {"reshard strategy make s16.ckpt --like ckpt_64 --src-strategy s64.ckpt --tp 8 --dp 2",
           "reshard strategy make s8.ckpt --like llama-hf --tp 4 --pp 2",
           "reshard strategy make spec.json s56.ckpt --from full.ckpt"}) {
  AddPositional(
      app(), "SPEC", options_.spec,
      "JSON file with the number of devices and cuts by name pattern; with --like there is "
      "none, and OUT comes first")
      ->required(false);
  app()
      .add_option("OUT", options_.output, "File to write: JSON if it ends in .json, else protobuf")
      ->type_name("");
  table_.AddTo(app(), kMakeStrategyCall, "Options");
  for (const Option& option : AllOptions()) {
    // Those of the source and of the cluster.
    if ((option.calls & kMakeStrategyCall) == 0 || option.group.empty()) continue;
    FindOption(app(), OnCommandLine(option))->needs(FindOption(app(), "--like"));
  }
}

int StrategyMakeCommand::Run() {
  if (const Status given = table_.ApplyTo(PartsOf(options_)); !given.ok()) return Fail(given);
  if (!options_.like.path.empty() && options_.output.empty()) {
    options_.output = std::exchange(options_.spec, {});
  }
  if (options_.output.empty()) {
    return Fail(InvalidArgumentError("expected SPEC OUT, or OUT alone with --like"));
  }
  const Result<StrategyReport> report = MakeStrategy(options_);
  if (!report.ok()) return Fail(report.status());
  PrintWarnings(report->warnings);
  if (json()) PrintReport(*report, {.place = options_.output});
  if (!quiet()) {
    PrintNotes(report->notes);
    PrintWords(WrittenStrategyText(options_.output, *report));
  }
  return 0;
}

}  // namespace reshard
