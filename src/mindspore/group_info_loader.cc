#include "src/mindspore/group_info_loader.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/foreign_file.h"
#include "src/mindspore/group_info_codec.h"
#include "src/mindspore/rank_pattern.h"
#include "src/os/input_file.h"

namespace reshard {
namespace {

Status ReadList(const std::string& path, std::vector<HolderGroups::List>& lists) {
  RESHARD_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > kMaxGroupInfoBytes) {
    return CorruptError(fmt::format("{}: expected a group_info file of at most {} bytes, found {}",
                                    Escape(path), kMaxGroupInfoBytes, file.size()));
  }
  std::string bytes(file.size(), '\0');
  RESHARD_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(bytes))));
  RESHARD_ASSIGN_OR_RETURN(std::vector<int64_t> ranks, ParseGroupInfo(path, bytes));
  lists.push_back({path, std::move(ranks)});
  return {};
}

Status ReadLists(const std::string& pattern, std::vector<HolderGroups::List>& lists) {
  RESHARD_ASSIGN_OR_RETURN(const PatternListing listing, ListPattern(pattern));
  const size_t before = lists.size();
  for (const RankListing& rank : listing.ranks) {
    // What is a folder, opening it says.
    if (rank.candidates.empty() && rank.label != rank.folder) continue;
    RESHARD_RETURN_IF_ERROR(ReadList(PathIn(listing.base, rank.label), lists));
  }
  if (lists.size() > before) return {};
  return NotFoundError(
      fmt::format("{}: expected group_info files of this pattern, found none", Escape(pattern)));
}

}  // namespace

Result<HolderGroups> LoadGroupInfo(const std::vector<std::string>& paths) {
  std::vector<HolderGroups::List> lists;
  for (const std::string& path : paths) {
    RESHARD_RETURN_IF_ERROR(IsRankPattern(path) ? ReadLists(path, lists) : ReadList(path, lists));
  }
  return HolderGroups::Make(std::move(lists));
}

}  // namespace reshard
