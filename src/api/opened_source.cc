#include "src/api/opened_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/index/strategy_loader.h"
#include "src/os/directory_listing.h"

namespace reshard {
namespace {

// About as many files as a target file is often put together from.
constexpr size_t kLeastIndexes = 16;

// Ranks to be listed in a message: how many, and the first of them.
class RankTally {
 public:
  void Add(int64_t rank) {
    ++count_;
    if (first_.size() < kMost) first_.push_back(rank);
  }
  // Adds the ranks from `begin` up to, but without, `end`.
  void Add(int64_t begin, int64_t end) {
    count_ += end - begin;
    while (begin < end && first_.size() < kMost) first_.push_back(begin++);
  }
  int64_t count() const { return count_; }
  std::string Words() const {
    const int64_t more = count_ - static_cast<int64_t>(first_.size());
    return fmt::format("{}{}", fmt::join(first_, ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
  }

 private:
  static constexpr size_t kMost = 20;
  int64_t count_ = 0;
  std::vector<int64_t> first_;
};

Status LoadIfGiven(const std::string& path, std::optional<Strategy>& strategy,
                   std::vector<std::string>& warnings) {
  if (path.empty()) return {};
  RESHARD_ASSIGN_OR_RETURN(strategy, LoadStrategy(path));
  warnings.insert(warnings.end(), strategy->notes().begin(), strategy->notes().end());
  return {};
}

}  // namespace

OpenedSource::OpenedSource(const Limits& limits)
    : files_({.window_budget = limits.window_bytes, .access = limits.access}),
      indexes_(files_, limits.index_bytes, kLeastIndexes) {}

Result<std::unique_ptr<OpenedSource>> OpenedSource::Open(const Paths& paths, const Limits& limits) {
  std::unique_ptr<OpenedSource> source(new OpenedSource(limits));
  RESHARD_RETURN_IF_ERROR(
      LoadIfGiven(paths.source_strategy, source->source_strategy_, source->warnings_));
  RESHARD_RETURN_IF_ERROR(
      LoadIfGiven(paths.target_strategy, source->target_strategy_, source->warnings_));
  source->rule_.emplace(source->source_strategy_ ? &*source->source_strategy_ : nullptr,
                        source->target_strategy_ ? &*source->target_strategy_ : nullptr);
  RESHARD_RETURN_IF_ERROR(source->ChooseFiles(paths));
  std::map<int64_t, FileId> rank_files;
  for (const File& file : source->chosen_) rank_files.emplace(file.rank, file.id);
  source->shards_.emplace(source->files_, source->indexes_, *source->rule_, std::move(rank_files));
  return source;
}

Status OpenedSource::ChooseFiles(const Paths& paths) {
  RankFolder folder;
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(paths.source));
  if (kind == PathKind::kFile || kind == PathKind::kOther) {  // opening says what is wrong with it
    if (source_strategy_) {
      return MismatchError(
          fmt::format("{}: is one file, but with a source strategy ({}) the source has to be the "
                      "folder that holds "
                      "rank_N/*.ckpt",
                      Escape(paths.source), Escape(paths.source_strategy)));
    }
    const std::string name = std::filesystem::path(paths.source).filename().string();
    folder.files.push_back({0, paths.source, name, std::nullopt});
  } else {
    RESHARD_ASSIGN_OR_RETURN(folder, FindRankFiles(paths.source, {paths.suffix}));
  }
  warnings_.insert(warnings_.end(), folder.warnings.begin(), folder.warnings.end());

  const int64_t first = rule_->SourceRank(0, 0);
  const int64_t end = rule_->SourceRank(rule_->source_stages() - 1, 0) + rule_->source_devices();
  RankTally extra;
  RankTally missing;
  int64_t expected = first;
  for (const RankFile& file : folder.files) {
    if (file.rank < first || file.rank >= end) {
      extra.Add(file.rank);
      continue;
    }
    missing.Add(expected, file.rank);
    expected = file.rank + 1;
    RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(file.path));
    step_ = file.step;
    chosen_.push_back({file.rank, file.relative_path, files_.Add(file.path, identity), identity});
  }
  missing.Add(expected, end);

  const std::string by = source_strategy_ ? Escape(source_strategy_->path()) : "no source strategy";
  if (chosen_.empty()) {
    return MismatchError(fmt::format("{}: expected the ranks {} to {} (by {}), found only rank {}",
                                     Escape(paths.source), first, end - 1, by, extra.Words()));
  }
  if (missing.count() > 0) {
    warnings_.push_back(fmt::format("{}: {} of the ranks {} to {} (by {}) are missing: {}",
                                    Escape(paths.source), missing.count(), first, end - 1, by,
                                    missing.Words()));
  }
  if (extra.count() > 0) {
    warnings_.push_back(
        fmt::format("{}: {} rank folders are beyond the ranks {} to {} (by {}), "
                    "not used: {}",
                    Escape(paths.source), extra.count(), first, end - 1, by, extra.Words()));
  }
  return {};
}

}  // namespace reshard
