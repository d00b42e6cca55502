#include "src/api/opened_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "src/base/status_macros.h"
#include "src/index/strategy_loader.h"
#include "src/os/directory_listing.h"

namespace reshard {
namespace {

// Far below the usual limit of 1,024 descriptors, and far more than one thread uses at a time.
constexpr size_t kMaxOpenFiles = 64;
constexpr size_t kIndexBudget = size_t{256} << 20;

std::string FirstRanks(const std::vector<int64_t>& ranks) {
  constexpr size_t kMost = 20;
  std::vector<int64_t> first(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMost)));
  std::string out = fmt::format("{}", fmt::join(first, ", "));
  if (ranks.size() > kMost) out += fmt::format(" and {} more", ranks.size() - kMost);
  return out;
}

Status LoadIfGiven(const std::string& path, std::optional<Strategy>& strategy,
                   std::vector<std::string>& warnings) {
  if (path.empty()) return {};
  RESHARD_ASSIGN_OR_RETURN(strategy, LoadStrategy(path));
  warnings.insert(warnings.end(), strategy->notes().begin(), strategy->notes().end());
  return {};
}

}  // namespace

OpenedSource::OpenedSource() : files_(kMaxOpenFiles), indexes_(files_, kIndexBudget) {}

Result<std::unique_ptr<OpenedSource>> OpenedSource::Open(const Paths& paths) {
  std::unique_ptr<OpenedSource> source(new OpenedSource);
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
  if (kind == PathKind::kFile) {
    if (source_strategy_) {
      return MismatchError(
          fmt::format("{}: is one file, but with a source strategy ({}) the source has to be the "
                      "folder that holds "
                      "rank_N/*.ckpt",
                      paths.source, paths.source_strategy));
    }
    const std::string name = std::filesystem::path(paths.source).filename().string();
    folder.files.push_back({0, paths.source, name, std::nullopt});
  } else {
    RESHARD_ASSIGN_OR_RETURN(folder, FindRankFiles(paths.source, {paths.suffix}));
  }
  warnings_.insert(warnings_.end(), folder.warnings.begin(), folder.warnings.end());

  const int64_t first = rule_->SourceRank(0, 0);
  const int64_t end = rule_->SourceRank(rule_->source_stages() - 1, 0) + rule_->source_devices();
  std::vector<int64_t> extra;
  std::vector<int64_t> missing;
  int64_t expected = first;
  for (const RankFile& file : folder.files) {
    if (file.rank < first || file.rank >= end) {
      extra.push_back(file.rank);
      continue;
    }
    while (expected < file.rank) missing.push_back(expected++);
    expected = file.rank + 1;
    RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(file.path));
    step_ = file.step;
    chosen_.push_back({file.rank, file.relative_path, files_.Add(file.path), identity});
  }
  while (expected < end) missing.push_back(expected++);

  const std::string by = source_strategy_ ? source_strategy_->path() : "no source strategy";
  if (chosen_.empty()) {
    return MismatchError(fmt::format("{}: expected the ranks {} to {} (by {}), found only rank {}",
                                     paths.source, first, end - 1, by, FirstRanks(extra)));
  }
  if (!missing.empty()) {
    warnings_.push_back(fmt::format("{}: {} of the ranks {} to {} (by {}) are missing: {}",
                                    paths.source, missing.size(), first, end - 1, by,
                                    FirstRanks(missing)));
  }
  if (!extra.empty()) {
    warnings_.push_back(
        fmt::format("{}: {} rank folders are beyond the ranks {} to {} (by {}), "
                    "not used: {}",
                    paths.source, extra.size(), first, end - 1, by, FirstRanks(extra)));
  }
  return {};
}

}  // namespace reshard
