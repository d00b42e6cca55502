#include "tools/cli/inspect_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "reshard/glob.h"
#include "reshard/rank_files.h"
#include "reshard/sharded_checkpoint.h"
#include "tools/cli/filter_warning.h"
#include "tools/cli/messages.h"
#include "tools/cli/near_names.h"
#include "tools/cli/parameter_text.h"
#include "tools/cli/printable.h"
#include "tools/cli/shard_report.h"
#include "tools/cli/stoppable_call.h"
#include "tools/cli/strategy_report.h"
#include "tools/cli/values_report.h"

namespace reshard {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// With names that may have been meant.
Status NoSuchParameter(const ShardedCheckpoint& checkpoint, const std::string& typed) {
  constexpr size_t kMostNames = 5;
  std::vector<std::string> all;
  std::vector<std::string> containing;
  uint64_t count = 0;
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    all.push_back(tensor.name);
    if (tensor.name.find(typed) == std::string::npos) continue;
    if (++count <= kMostNames) containing.push_back(tensor.name);
  }
  const std::string nearest = NearestName(typed, all);
  return NotFoundError(fmt::format(
      "the checkpoint has no tensor \"{}\"; {}", PrintableName(typed),
      count > 0 && !typed.empty() ? "names that contain it: " + PrintableNames(containing, count)
      : nearest.empty()           ? "`reshard inspect` lists the names"
                                  : fmt::format("did you mean {}?", PrintableName(nearest))));
}

}  // namespace

InspectCommand::InspectCommand(CLI::App& parent)
    : Command(parent, "inspect", "Show what checkpoints, folders of ranks and strategies hold",
              {"reshard inspect ckpt_8/rank_0/net-1_100.ckpt",
               "reshard inspect ckpt_8 --filter 'adam_m.*'",
               "reshard inspect ckpt_8 --strategy s8.ckpt --param lm_head.weight",
               "reshard inspect ckpt_8 --strategy s8.ckpt --values",
               "reshard inspect ckpt_8 strategy_8.ckpt --json"}) {
  AddPositional(
      app(), "PATH", paths_,
      "Checkpoint file, folder with rank_N/*.ckpt or pattern with {rank}, strategy file or folder "
      "of stage files");
  app()
      .add_option("--filter", filter_,
                  "Only parameters whose names match a glob pattern; totals count only these")
      ->type_name("GLOB");
  app()
      .add_option("--suffix", suffix_,
                  "Of a folder of ranks take the checkpoints that end in -EPOCH_STEP; without it "
                  "the latest")
      ->type_name("-E_S");
  app()
      .add_option("--strategy", strategy_,
                  "Strategy file of the checkpoint at PATH, or folder of stage files: for --param "
                  "and --values of full tensors")
      ->type_name("S");
  app()
      .add_option("--param", parameter_,
                  "Which ranks hold which box of this parameter; takes --strategy")
      ->type_name("NAME");
  app().add_flag("--values", values_,
                 "Read the content: least, greatest and mean value, NaNs and infinities of each "
                 "parameter");
  AddJobsOption(app(), jobs_, "Threads that read for --values; 0 is all cores (2)");
}

Status InspectCommand::CheckOptions() const {
  if (values_ && !parameter_.empty()) {
    return InvalidArgumentError("--param and --values are asked for one at a time");
  }
  if (!parameter_.empty() && strategy_.empty()) {
    return InvalidArgumentError("--param takes the checkpoint's --strategy");
  }
  if (!strategy_.empty() && parameter_.empty() && !values_) {
    return InvalidArgumentError("--strategy is for --param or --values");
  }
  return {};
}

UsedPaths InspectCommand::Paths() const {
  UsedPaths used{.checkpoints = paths_, .files = paths_};
  used.files.push_back(strategy_);
  return used;
}

int InspectCommand::Run() {
  if (const Status status = CheckOptions(); !status.ok()) return Fail(status);
  // The document begins as JsonDocument() without its closing brace.
  if (json()) {
    std::string head = ToJsonText(JsonDocument());
    head.pop_back();
    PrintData(head + ",\"checkpoints\":[");
  }
  for (const std::string& path : paths_) {
    if (!cancelled_) InspectPath(path);
  }
  if (!filter_.empty() && parameter_.empty() && !filter_matched_ && exit_code_ == 0) {
    warnings_.push_back(FilterWarning(filter_));
    PrintWarnings({warnings_.back()});
  }
  if (json()) {
    nlohmann::ordered_json rest = {{"strategies", std::move(strategies_)},
                                   {"totals", totals_.ToJson()},
                                   {"warnings", warnings_},
                                   {"errors", std::move(errors_)}};
    if (!strategy_.empty()) rest["sharded"] = std::move(sharded_);
    PrintData("]," + ToJsonText(rest).substr(1) + '\n');
  } else if (checkpoints_ > 0) {
    PrintData(totals_.ToText());
  }
  return exit_code_;
}

void InspectCommand::InspectPath(const std::string& path) {
  if (!parameter_.empty()) {
    InspectShards(path);
  } else if (!strategy_.empty()) {
    InspectValues(path);
  } else if (IsFolder(path) || path.find("{rank}") != std::string::npos) {
    InspectFolder(path);
  } else {
    InspectFile(path);
  }
}

void InspectCommand::InspectFile(const std::string& path) {
  const Result<Checkpoint> checkpoint = Checkpoint::Open(path);
  if (checkpoint.ok()) {
    ShowCheckpoint(*checkpoint, std::nullopt);
    return;
  }
  const Result<StrategySummary> strategy = ReadStrategy(path);
  if (strategy.ok()) {
    ShowStrategy(*strategy);
    return;
  }
  // A file that parses as a strategy is one, even if its layouts contradict each other.
  const bool is_strategy = strategy.status().code() == StatusCode::kMismatch;
  Report(path, is_strategy ? strategy.status() : checkpoint.status());
}

void InspectCommand::InspectFolder(const std::string& path) {
  const Result<RankFiles> ranks = ListRankFiles(path, suffix_);
  if (!ranks.ok()) {
    if (ranks.status().code() != StatusCode::kNotFound) return Report(path, ranks.status());
    const Result<StrategySummary> strategy = ReadStrategy(path);
    if (strategy.ok()) return ShowStrategy(*strategy);
    if (strategy.status().code() == StatusCode::kNotFound) return Report(path, ranks.status());
    return Report(path, Status(strategy.status().code(),
                               fmt::format("{}; as a folder of strategy files: {}",
                                           ranks.status().message(), strategy.status().message())));
  }
  PrintWarnings(ranks->warnings);
  warnings_.insert(warnings_.end(), ranks->warnings.begin(), ranks->warnings.end());
  for (const RankFileSummary& file : ranks->files) {
    if (cancelled_) return;
    const Result<Checkpoint> checkpoint = Checkpoint::Open(file.path);
    if (checkpoint.ok()) {
      ShowCheckpoint(*checkpoint, file.rank);
    } else {
      Report(file.path, checkpoint.status());
    }
  }
}

void InspectCommand::InspectShards(const std::string& path) {
  const Result<ShardedCheckpoint> checkpoint = ShardedCheckpoint::Open(path, strategy_, suffix_);
  if (!checkpoint.ok()) return Report(path, checkpoint.status());
  PrintWarnings(checkpoint->warnings());
  warnings_.insert(warnings_.end(), checkpoint->warnings().begin(), checkpoint->warnings().end());
  const LogicalTensor* const tensor = checkpoint->Find(parameter_);
  if (tensor == nullptr) return Report(path, NoSuchParameter(*checkpoint, parameter_));
  const Result<std::vector<Shard>> shards = checkpoint->Shards(parameter_);
  if (!shards.ok()) return Report(path, shards.status());
  if (!json()) return PrintData(ShardsAsText(*tensor, *shards));
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  parameters.push_back(ShardsAsJson(*tensor, *shards));
  sharded_.push_back({{"path", path}, {"parameters", std::move(parameters)}});
}

Result<StatisticsReport> InspectCommand::Measure(const std::string& path) const {
  StatisticsOptions options;
  options.path = path;
  options.strategy = strategy_;
  options.suffix = IsFolder(path) ? suffix_ : "";
  options.jobs = jobs_;
  if (!filter_.empty()) {
    options.select = [this](std::string_view name) { return GlobMatch(filter_, name); };
  }
  return CallStoppable(options, progress_style(), MeasureValues);
}

void InspectCommand::InspectValues(const std::string& path) {
  const Result<StatisticsReport> report = Measure(path);
  if (!report.ok()) return Report(path, report.status());
  PrintWarnings(report->warnings);
  warnings_.insert(warnings_.end(), report->warnings.begin(), report->warnings.end());
  filter_matched_ |= !report->parameters.empty();
  if (!json()) return PrintData(ValuesAsText(report->parameters));
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (const ParameterStatistics& parameter : report->parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"dtype", TypeName(parameter.kind, parameter.dtype)},
                          {"full_shape", ShapeAsJson(parameter.kind, parameter.full_shape)},
                          {"statistics", ValuesAsJson(parameter.statistics)}});
  }
  sharded_.push_back({{"path", path}, {"parameters", std::move(parameters)}});
}

void InspectCommand::ShowCheckpoint(const Checkpoint& checkpoint, std::optional<int64_t> rank) {
  const std::vector<const StoredArray*> parameters = SelectParameters(checkpoint, filter_);
  std::vector<ParameterStatistics> statistics;
  if (values_) {
    Result<StatisticsReport> report = Measure(checkpoint.path());
    if (!report.ok()) return Report(checkpoint.path(), report.status());
    statistics = std::move(report->parameters);
  }
  totals_.Add(parameters);
  filter_matched_ |= !parameters.empty();
  if (json()) {
    const std::string separator = checkpoints_ == 0 ? "" : ",";
    nlohmann::ordered_json document = CheckpointAsJson(checkpoint, rank, parameters);
    // Both are in the order of the file.
    for (size_t i = 0; i < statistics.size(); ++i) {
      document["parameters"][i]["statistics"] = ValuesAsJson(statistics[i].statistics);
    }
    PrintData(separator + ToJsonText(document));
  } else {
    PrintData(CheckpointLine(checkpoint, rank) +
              (values_ ? ValuesAsText(statistics) : ParametersAsText(parameters, verbose())) +
              '\n');
  }
  ++checkpoints_;
}

void InspectCommand::ShowStrategy(const StrategySummary& strategy) {
  if (!quiet()) PrintNotes(strategy.notes);
  filter_matched_ |= AnyLayoutMatches(strategy, filter_);
  if (json()) {
    strategies_.push_back(StrategyAsJson(strategy, filter_));
  } else {
    PrintData(StrategyAsText(strategy, filter_, verbose()) + '\n');
  }
}

void InspectCommand::Report(const std::string& path, const Status& status) {
  const int exit_code = Fail(status);
  if (exit_code_ == 0) exit_code_ = exit_code;
  cancelled_ |= status.code() == StatusCode::kCancelled;
  errors_.push_back(
      {{"path", path}, {"code", StatusCodeName(status.code())}, {"message", status.message()}});
}

}  // namespace reshard
