#include "tools/cli/inspect_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "reshard/rank_files.h"
#include "tools/cli/messages.h"
#include "tools/cli/strategy_report.h"

namespace reshard {
namespace {

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

}  // namespace

InspectCommand::InspectCommand(CLI::App& parent)
    : Command(parent, "inspect", "Show what checkpoints, folders of ranks and strategies hold",
              {"reshard inspect ckpt_8/rank_0/net-1_100.ckpt",
               "reshard inspect ckpt_8 --filter 'adam_m.*'",
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
}

int InspectCommand::Run() {
  // The document begins as JsonDocument() without its closing brace.
  if (json()) {
    std::string head = ToJsonText(JsonDocument());
    head.pop_back();
    PrintData(head + ",\"checkpoints\":[");
  }
  for (const std::string& path : paths_) InspectPath(path);
  if (json()) {
    const nlohmann::ordered_json rest = {{"strategies", std::move(strategies_)},
                                         {"totals", totals_.ToJson()},
                                         {"warnings", warnings_},
                                         {"errors", std::move(errors_)}};
    PrintData("]," + ToJsonText(rest).substr(1) + '\n');
  } else if (checkpoints_ > 0) {
    PrintData(totals_.ToText());
  }
  return exit_code_;
}

void InspectCommand::InspectPath(const std::string& path) {
  if (IsFolder(path) || path.find("{rank}") != std::string::npos) {
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
    const Result<Checkpoint> checkpoint = Checkpoint::Open(file.path);
    if (checkpoint.ok()) {
      ShowCheckpoint(*checkpoint, file.rank);
    } else {
      Report(file.path, checkpoint.status());
    }
  }
}

void InspectCommand::ShowCheckpoint(const Checkpoint& checkpoint, std::optional<int64_t> rank) {
  const std::vector<const ParameterInfo*> parameters = SelectParameters(checkpoint, filter_);
  totals_.Add(parameters);
  if (json()) {
    const std::string separator = checkpoints_ == 0 ? "" : ",";
    PrintData(separator + ToJsonText(CheckpointAsJson(checkpoint, rank, parameters)));
  } else {
    PrintData(CheckpointAsText(checkpoint, rank, parameters, verbose()) + '\n');
  }
  ++checkpoints_;
}

void InspectCommand::ShowStrategy(const StrategySummary& strategy) {
  if (!quiet()) PrintNotes(strategy.notes);
  if (json()) {
    strategies_.push_back(StrategyAsJson(strategy, filter_));
  } else {
    PrintData(StrategyAsText(strategy, filter_, verbose()) + '\n');
  }
}

void InspectCommand::Report(const std::string& path, const Status& status) {
  const int exit_code = Fail(status);
  if (exit_code_ == 0) exit_code_ = exit_code;
  errors_.push_back(
      {{"path", path}, {"code", StatusCodeName(status.code())}, {"message", status.message()}});
}

}  // namespace reshard
