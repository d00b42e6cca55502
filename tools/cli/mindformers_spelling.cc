#include "tools/cli/mindformers_spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "reshard/strategy_files.h"
#include "tools/cli/command.h"
#include "tools/cli/find_option.h"
#include "tools/cli/printable.h"

namespace reshard {
namespace {

// Turns the words for true and false into those that the parser knows. MindFormers itself takes
// every text for true.
CLI::Validator Truth() {
  const auto check = [](std::string& text) -> std::string {
    std::string word = text;
    for (char& letter : word) letter = static_cast<char>(std::tolower(letter));
    const bool yes = word == "true" || word == "1";
    if (!yes && word != "false" && word != "0") return "has to be True or False; found " + text;
    text = yes ? "true" : "false";
    return "";
  };
  return {check, ""};
}

// "None" and nothing stand for no strategy.
std::string StrategyPath(const std::string& text) { return text == "None" ? "" : text; }

}  // namespace

void MindFormersSpelling::AddTo(CLI::App& app) {
  const auto add = [&app](const char* name, auto& variable, const char* type, const char* words) {
    return app.add_option(name, variable, words)->type_name(type)->group("As in MindFormers");
  };
  constexpr size_t kMostDigits = 9;  // of an int
  add("--src_checkpoint,--src_ckpt_dir", source_, "SRC", "SRC");
  add("--dst_checkpoint_dir,--dst_checkpoint,--dst_ckpt_dir", target_, "DST", "DST");
  add("--src_strategy,--src_ckpt_strategy", source_strategy_, "S",
      "--src-strategy; None or nothing is for none")
      ->expected(0, 1)
      ->excludes(FindOption(app, "--src-strategy"));
  add("--dst_strategy,--dst_ckpt_strategy", target_strategy_, "D",
      "--dst-strategy; None or nothing is for none")
      ->expected(0, 1)
      ->excludes(FindOption(app, "--dst-strategy"));
  add("--transform_by_rank", by_rank_, "True|False",
      "Convert only target rank --rank_id; False, the default, converts all")
      ->transform(Truth())
      ->excludes(FindOption(app, "--rank"));
  add("--rank_id", rank_, "N", "--rank with --transform_by_rank True (0), nothing without it")
      ->transform(WholeNumber())
      ->excludes(FindOption(app, "--rank"));
  add("--world_size", world_size_, "W", "Fail unless there are W target ranks")
      ->transform(WholeNumber());
  add("--transform_process_num", processes_, "J", "--jobs")
      ->transform(WholeNumber(kMostDigits))
      ->excludes(FindOption(app, "--jobs"));
}

void MindFormersSpelling::ApplyTo(ConvertOptions& options) const {
  if (source_strategy_) options.source_strategy = StrategyPath(*source_strategy_);
  if (target_strategy_) options.target_strategy = StrategyPath(*target_strategy_);
  if (processes_) options.jobs = *processes_;
  if (by_rank_) options.ranks = {rank_.value_or(0)};
}

Status MindFormersSpelling::CheckWorldSize(const std::string& target_strategy) const {
  if (!world_size_) return {};
  int64_t ranks = 1;
  if (!target_strategy.empty()) {
    const Result<StrategySummary> strategy = ReadStrategy(target_strategy);
    if (!strategy.ok()) return strategy.status();
    ranks = strategy->stages * strategy->devices_per_stage;
  }
  if (*world_size_ == ranks) return {};
  return InvalidArgumentError(
      fmt::format("--world_size: expected {}, the target ranks {}, found {}", ranks,
                  target_strategy.empty() ? "without a target strategy"
                                          : "of " + PrintableName(target_strategy),
                  *world_size_));
}

std::optional<std::string> MindFormersSpelling::Warning() const {
  if (!by_rank_ || !world_size_ || !processes_ || *processes_ == 0) return std::nullopt;
  const int64_t share = *world_size_ / *processes_;
  if (share < 2) return std::nullopt;
  const int64_t first = rank_.value_or(0);
  return fmt::format(
      "only target rank {} is converted; with --transform_process_num {} of --world_size {} a "
      "process of MindFormers would convert the ranks {} to {}: leave out --transform_by_rank to "
      "convert all",
      first, *processes_, *world_size_, first, first + share - 1);
}

}  // namespace reshard
