#include "tools/cli/strategy_command.h"

#include <fmt/format.h>

#include <utility>

#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "tools/cli/messages.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stop_on_signal.h"
#include "tools/cli/strategy_report.h"
#include "tools/page/text_format.h"

namespace reshard {

StrategyShowCommand::StrategyShowCommand(CLI::App& parent)
    : Command(parent, "show", "Print the layouts of a strategy",
              {"reshard strategy show s8.ckpt",
               "reshard strategy show stages/ --include '*.attention.*' --json"}) {
  AddPositional(app(), "FILE", path_, "Strategy file, or folder of stage files");
  filter_.AddTo(app(), "--include,--filter");
  app().add_flag("--long", long_, "List every parameter; without it, equal ones share a line");
}

int StrategyShowCommand::Run() {
  const Result<Strategy> strategy = ReadStrategy(path_);
  if (!strategy.ok()) return Fail(strategy.status());
  if (!quiet()) PrintNotes(strategy->notes());
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

StrategyMergeCommand::StrategyMergeCommand(CLI::App& parent)
    : Command(parent, "merge", "Merge the strategy files of pipeline stages into one",
              {"reshard strategy merge stages/ s8.ckpt"}) {
  AddPositional(app(), "DIR", folder_, "Folder with one strategy file for each stage");
  AddPositional(app(), "OUT", output_, "File to write");
  app().add_flag("--force", force_, "Replace OUT when it exists");
}

int StrategyMergeCommand::Run() {
  const Result<StrategyMergeReport> report = MergeStrategies(folder_, output_, force_);
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
  app()
      .add_option("--rename", rename_file_,
                  "JSON file of new names, as for convert; only the layouts are written")
      ->type_name("MAP.json");
  app().add_flag("--force", options_.force, "Replace OUT when it exists");
}

int StrategyConvertCommand::Run() {
  if (!rename_file_.empty()) {
    Result<Renames> renames = ReadRenames(rename_file_);
    if (!renames.ok()) return Fail(renames.status());
    options_.renames = *std::move(renames);
  }
  const Result<StrategyConversionReport> report = ConvertStrategyFile(options_);
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
  app()
      .add_option("--reference", options_.reference,
                  "Full checkpoint (file or folder) of the same model, best with the same values")
      ->required()
      ->type_name("CKPT");
  app().add_flag("--force", options_.force, "Replace OUT when it exists");
  AddJsonLinesOption();
}

int StrategyInferCommand::Run() {
  const Result<InferStrategyReport> report =
      CallStoppable(options_, progress_style(), InferStrategy);
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
      "none, and OUT comes first");
  app()
      .add_option("OUT", options_.output, "File to write: JSON if it ends in .json, else protobuf")
      ->type_name("");
  app()
      .add_option(
          "--from", options_.checkpoint,
          "Full checkpoint (file or folder) that gives the names for the patterns, and the shapes")
      ->type_name("CKPT");
  CLI::Option* const like =
      app()
          .add_option(
              "--like", options_.like.path,
              "Source that gives names, shapes and cuts: rank folders, a full checkpoint or "
              "a strategy")
          ->type_name("SRC");
  const auto of_like = [&](CLI::Option* option) { return option->needs(like); };
  of_like(app().add_option("--src-strategy,--strategy", src_strategy_, "Strategy of SRC"))
      ->type_name("PATH");
  constexpr int kMostStages = 1 << 20;
  Cluster& cluster = options_.cluster;
  of_like(app().add_option("--tp", cluster.tensor_parallel, "Parts of each matrix (default 1)"))
      ->type_name("N");
  of_like(app().add_option("--dp", cluster.data_parallel, "Replicas (default 1)"))->type_name("N");
  of_like(app().add_option("--pp", cluster.pipeline_stages, "Pipeline stages (default 1)"))
      ->type_name("N");
  of_like(app().add_option("--optimizer-sharding", cluster.optimizer_shards,
                           "Cut matrices further over N replicas; without N, over all"))
      ->type_name("[N]")
      ->expected(0, 1)
      ->default_str("-1");
  of_like(app().add_option("--stage-layers", cluster.stage_layers,
                           "Layers of each stage, such as 10,11,11"))
      ->type_name("N,...")
      ->delimiter(',')
      ->expected(1, kMostStages)
      ->allow_extra_args(false);
  app().add_flag("--force", options_.force, "Replace OUT when it exists");
}

int StrategyMakeCommand::Run() {
  if (!options_.like.path.empty() && options_.output.empty()) {
    options_.output = std::exchange(options_.spec, {});
  }
  if (options_.output.empty()) return Fail(InvalidArgumentError("OUT is required"));
  options_.like.strategy = src_strategy_;
  const Result<MakeStrategyReport> report = MakeStrategy(options_);
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
