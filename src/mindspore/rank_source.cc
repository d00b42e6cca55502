#include "src/mindspore/rank_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/rank_list.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/run_folder.h"
#include "src/mindspore/strategy_loader.h"
#include "src/os/threads.h"
#include "src/source/listed_placement.h"

namespace reshard {
namespace {

// Returns the source ranks that some target ranks need; no value if the strategies do not tell.
// Planning reports the error.
std::optional<std::set<int64_t>> NeededRanks(const ConversionRule& rule,
                                             const std::vector<int64_t>& target_ranks) {
  std::set<int64_t> needed;
  for (const int64_t rank : target_ranks) {
    const Result<std::vector<int64_t>> list = RankList(rule, rank);
    if (!list.ok()) return std::nullopt;
    needed.insert(list->begin(), list->end());
  }
  return needed;
}

// The ranks that a source of the rule has.
RankRange RanksOf(const ConversionRule& rule) {
  return {rule.SourceRank(0, 0),
          rule.SourceRank(rule.source_stages() - 1, 0) + rule.source_devices()};
}

// Returns the ranks that the target ranks (none: all) need, without files of their own or of a rank
// that holds the same weights.
NumberRanges MissingRanks(const std::vector<ChosenFile>& chosen, const ConversionRule& rule,
                          const std::vector<int64_t>& target_ranks) {
  const auto has_file = [&](int64_t rank) {
    const auto place =
        std::lower_bound(chosen.begin(), chosen.end(), rank,
                         [](const ChosenFile& file, int64_t wanted) { return file.rank < wanted; });
    return place != chosen.end() && place->rank == rank;
  };
  std::optional<std::set<int64_t>> needed;
  if (!target_ranks.empty()) needed = NeededRanks(rule, target_ranks);
  NumberRanges missing;
  const auto [first, end] = RanksOf(rule);
  for (int64_t rank = first; rank < end; ++rank) {
    if (has_file(rank) || (needed && !needed->contains(rank))) continue;
    const auto holders = rule.groups().HoldersLike(rank);
    if (std::none_of(holders.begin(), holders.end(), has_file)) missing.Add(rank);
  }
  return missing;
}

// The words in messages for the ranks of a source by the rule, and for the origin of this number.
struct KnownRanks {
  std::string all;
  std::string by;
};

KnownRanks InWords(const ConversionRule& rule) {
  const auto [first, end] = RanksOf(rule);
  NumberRanges ranks;
  ranks.AddRange(first, end - 1);
  return {ranks.ToWords("rank"), rule.source() != nullptr ? "by " + Escape(rule.source()->path())
                                                          : "without a source strategy"};
}

// Says that there are files of `extra` ranks, which the rule does not know, beside others.
Result<Warning> SayExtra(const SourceSpec& spec, const RankFolder& folder,
                         const ConversionRule& rule, const NumberRanges& extra) {
  if (rule.source() == nullptr) {
    return MismatchError(
        fmt::format("{}: found {} beside rank 0, but no strategy says how tensors are cut; give "
                    "the strategy that the checkpoint was saved with (`source.strategy`). If each "
                    "rank has full tensors, give one file as the source{}",
                    SourceName(spec), extra.ToWords("rank"), HintOfStrategyBeside(spec)));
  }
  const KnownRanks known = InWords(rule);
  const std::string beyond = fmt::format(
      "{}: expected {} ({}), found {} more: {}", SourceName(spec), known.all, known.by,
      extra.count() == 1 ? "1 rank" : fmt::format("{} ranks", extra.count()), extra.ToText());
  if (rule.stage_alone()) {  // they are of other stages
    return Warning{WarningCode::kRanksBeyondStrategy, beyond + "; not used"};
  }
  const std::string hint =
      SwapHint(rule, folder.files.front().rank, folder.files.back().rank, folder.files.size());
  if (!hint.empty()) return MismatchError(beyond + "; " + hint);
  return MismatchError(beyond +
                       "; give the strategy that the checkpoint was saved with, all its stages, or "
                       "files or a pattern of its ranks only");
}

// Chooses the files of ranks that the rule knows, and returns the other ranks.
Result<NumberRanges> AddRankFiles(const RankFolder& folder, const ConversionRule& rule,
                                  SourceFiles& files, FoundSource& found) {
  const auto [first, end] = RanksOf(rule);
  const auto replicas =
      rule.source() != nullptr ? std::span<const int64_t>() : rule.groups().HoldersLike(first);
  NumberRanges extra;
  for (const RankFile& file : folder.files) {
    if ((file.rank < first || file.rank >= end) &&
        std::find(replicas.begin(), replicas.end(), file.rank) == replicas.end()) {
      extra.Add(file.rank);
      continue;
    }
    found.files.push_back({file.rank, file.relative_path, files.Add(file.path), {}});
  }
  const auto pin = [&](size_t i, const std::stop_token& /*stop*/) -> Status {
    ChosenFile& file = found.files[i];
    const std::string& path = files.path(file.id);
    RESHARD_ASSIGN_OR_RETURN(file.identity, Storage::Of(path).Pin(path));
    files.Add(path, file.identity);
    return {};
  };
  const size_t askers = found.files.empty() ? 1 : Askers(files.path(found.files.front().id), 1);
  RESHARD_RETURN_IF_ERROR(RunWorkers(askers, found.files.size(), pin, std::stop_token()));
  return extra;
}

}  // namespace

std::string SourceName(const SourceSpec& spec) {
  return spec.files.empty() ? Escape(spec.path) : "`source.files`";
}

Result<RankFolder> FindRanks(const SourceSpec& spec) {
  if (!spec.files.empty()) return TakeRankFiles(spec.files, {spec.suffix});
  if (IsRankPattern(spec.path)) return FindRankFiles(spec.path, {spec.suffix});
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(spec.path).KindOf(spec.path));
  if (kind == PathKind::kMissing || kind == PathKind::kDirectory) {
    return FindRankFiles(spec.path, {spec.suffix});
  }
  // If the entry is not a file or a folder, opening it reports that.
  if (!spec.strategy.empty()) {
    return MismatchError(
        fmt::format("{}: is one file, but with a source strategy ({}) the source has to be the "
                    "folder that holds "
                    "rank_N/*.ckpt",
                    Escape(spec.path), Escape(StrategyName(spec.strategy))));
  }
  const std::string name = std::filesystem::path(spec.path).filename().string();
  return RankFolder{{{0, spec.path, name, std::nullopt}}, {}};
}

RankSource PlaceRanks(FoundSource found, const ConversionRule& rule,
                      const ParameterChoice& choice) {
  RankSource source{std::move(found), nullptr};
  std::map<int64_t, FileId> by_rank;
  for (const ChosenFile& file : source.found.files) by_rank.emplace(file.rank, file.id);
  if (rule.source() == nullptr) {
    source.found.placement = std::make_unique<ListedPlacement>(std::move(by_rank));
  } else {
    auto grid = std::make_unique<GridPlacement>(rule, std::move(by_rank), choice);
    source.grid = grid.get();
    source.found.placement = std::move(grid);
  }
  return source;
}

Result<RankSource> ChooseRanks(const SourceSpec& spec, const std::vector<int64_t>& target_ranks,
                               const RankFolder& folder, const ConversionRule& rule,
                               const ParameterChoice& choice, SourceFiles& files) {
  FoundSource found;
  found.warnings = folder.warnings;
  RESHARD_ASSIGN_OR_RETURN(const NumberRanges extra, AddRankFiles(folder, rule, files, found));
  const KnownRanks known = InWords(rule);
  if (extra.count() > 0 && !spec.files.empty()) {
    return InvalidArgumentError(fmt::format("`source.files`: expected source {} ({}), found {}",
                                            known.all, known.by, extra.ToText()));
  }
  if (found.files.empty()) {
    return MismatchError(fmt::format("{}: expected {} ({}), found only {}", SourceName(spec),
                                     known.all, known.by, extra.ToWords("rank")));
  }
  const NumberRanges missing = MissingRanks(found.files, rule, target_ranks);
  if (missing.count() > 0) {
    found.warnings.push_back(
        {WarningCode::kMissingRanks,
         fmt::format("{}: {} of {} ({}) {} missing: {}", SourceName(spec), missing.count(),
                     known.all, known.by, missing.count() == 1 ? "is" : "are", missing.ToText())});
  }
  if (extra.count() > 0) {
    RESHARD_ASSIGN_OR_RETURN(Warning warning, SayExtra(spec, folder, rule, extra));
    found.warnings.push_back(std::move(warning));
  }
  return PlaceRanks(std::move(found), rule, choice);
}

}  // namespace reshard
