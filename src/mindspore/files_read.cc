#include "src/mindspore/files_read.h"

#include "src/mindspore/rank_listing.h"
#include "src/mindspore/rank_pattern.h"
#include "src/os/paths.h"

namespace reshard {
namespace {

void AppendFolder(const std::string& folder, std::vector<std::string>& files) {
  const auto entries = ListDirectory(folder);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    const bool counts = entry.name.ends_with(kCheckpointExtension) || entry.name.ends_with(".json");
    if (entry.is_regular && counts) files.push_back(PathIn(folder, entry.name));
  }
}

void AppendPattern(const std::string& pattern, std::vector<std::string>& files) {
  const auto listing = ListPattern(pattern);
  if (!listing.ok()) return;
  for (const RankListing& rank : listing->ranks) {
    const std::string folder = PathIn(listing->base, rank.folder);
    for (const Candidate& candidate : rank.candidates) {
      files.push_back(PathIn(folder, candidate.name));
    }
  }
}

}  // namespace

std::vector<std::string> FilesRead(const UsedPaths& used) {
  std::vector<std::string> files;
  for (const std::vector<std::string>* paths : {&used.checkpoints, &used.files}) {
    for (const std::string& path : *paths) {
      if (IsRankPattern(path)) {
        AppendPattern(path, files);
        continue;
      }
      const auto kind = KindOf(path);
      if (!kind.ok()) continue;
      if (*kind == PathKind::kFile) files.push_back(path);
      if (*kind == PathKind::kDirectory && paths == &used.files) AppendFolder(path, files);
    }
  }
  return files;
}

}  // namespace reshard
