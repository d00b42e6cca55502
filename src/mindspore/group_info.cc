#include "src/mindspore/group_info.h"

#include <fmt/format.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "reshard/strategy.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/foreign_file.h"
#include "src/mindspore/group_info.pb.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/strategy_tables.h"
#include "src/mindspore/strategy_wire.h"

namespace reshard {
namespace {

using google::protobuf::internal::WireFormatLite;

// Keys (number << 3 | wire type) of a ParallelGroupMap.
constexpr uint32_t kGroupKey = 0x0a;
constexpr uint32_t kRestoreListKey = 0x12;
// Fields beyond these may be of a later version; lower ones of other types are of other files.
constexpr int kLastForeignField = 3;

// A list of kMaxRanks ranks has fewer, in every form that it may be written in.
constexpr uint64_t kMaxListBytes = uint64_t{8} << 20;

// Adds the ranks of every list of the file to `ranks`; there is one, ordinarily.
Status MergeLists(const std::string& path, std::string_view bytes, ParallelGroupRanks& ranks) {
  WireReader reader(path, "a group_info file", bytes);
  while (!reader.AtEnd()) {
    RESHARD_ASSIGN_OR_RETURN(const uint32_t key, reader.ReadKey());
    if (key != kGroupKey && key != kRestoreListKey) {
      if (WireFormatLite::GetTagFieldNumber(key) > kLastForeignField && reader.Skip().ok()) {
        continue;
      }
      return reader.Unexpected(fmt::format("a field {} that it does not have", key >> 3));
    }
    RESHARD_ASSIGN_OR_RETURN(const std::string_view field, reader.ReadBytes());
    if (key == kGroupKey) continue;
    if (field.size() > kMaxListBytes) {
      return reader.Unexpected(
          fmt::format("a list of {} bytes (more than {})", field.size(), kMaxListBytes));
    }
    ParallelGroupRanks list;
    if (!list.ParsePartialFromArray(field.data(), static_cast<int>(field.size())) ||
        !list.unknown_fields().empty()) {
      return reader.Unexpected("a field 2 that is no list of ranks");
    }
    ranks.MergeFrom(list);
    if (ranks.dim_size() > kMaxRanks) {
      return reader.Unexpected(fmt::format("a list of more than {} ranks", kMaxRanks));
    }
  }
  return {};
}

// The ranks of a file, in its order.
Result<std::vector<int64_t>> RanksIn(const std::string& path, std::string_view bytes) {
  const std::string_view kind = KindOfForeignFile(bytes);
  if (!kind.empty() && kind != kGroupInfoKind) {
    return CorruptError(
        fmt::format("{}: expected a group_info file, found {}", Escape(path), kind));
  }
  ParallelGroupRanks list;
  RESHARD_RETURN_IF_ERROR(MergeLists(path, bytes, list));
  return std::vector<int64_t>(list.dim().begin(), list.dim().end());
}

Status ReadList(const std::string& path, std::vector<HolderGroups::List>& lists) {
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                           Storage::Of(path).ReadWhole(path, kMaxGroupInfoBytes));
  RESHARD_ASSIGN_OR_RETURN(std::vector<int64_t> ranks, ParseGroupInfo(path, bytes));
  lists.push_back({path, std::move(ranks)});
  return {};
}

Status ReadLists(const std::string& pattern, std::vector<HolderGroups::List>& lists) {
  RESHARD_ASSIGN_OR_RETURN(const PatternListing listing, ListPattern(pattern));
  const size_t before = lists.size();
  for (const RankListing& rank : listing.ranks) {
    // If it is a folder, opening it reports that.
    if (rank.candidates.empty() && rank.label != rank.folder) continue;
    RESHARD_RETURN_IF_ERROR(ReadList(PathIn(listing.base, rank.label), lists));
  }
  if (lists.size() > before) return {};
  return NotFoundError(
      fmt::format("{}: expected group_info files of this pattern, found none", Escape(pattern)));
}

}  // namespace

Result<std::vector<int64_t>> ParseGroupInfo(const std::string& path, std::string_view bytes) {
  RESHARD_ASSIGN_OR_RETURN(std::vector<int64_t> ranks, RanksIn(path, bytes));
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty()) {
    return CorruptError(fmt::format(
        "{}: expected a list of the ranks that hold the same weights (ckpt_restore_rank_list), "
        "found none; is it a group_info file?",
        Escape(path)));
  }
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end()) {
    return CorruptError(
        fmt::format("{}: expected each rank once in ckpt_restore_rank_list, found rank {} twice",
                    Escape(path), *twice));
  }
  if (ranks.back() >= kMaxRanks) {
    return CorruptError(
        fmt::format("{}: expected ranks below {} in ckpt_restore_rank_list, found {}", Escape(path),
                    kMaxRanks, ranks.back()));
  }
  return ranks;
}

Result<HolderGroups> LoadGroupInfo(const std::vector<std::string>& paths) {
  std::vector<HolderGroups::List> lists;
  for (const std::string& path : paths) {
    RESHARD_RETURN_IF_ERROR(IsRankPattern(path) ? ReadLists(path, lists) : ReadList(path, lists));
  }
  return HolderGroups::Make(std::move(lists));
}

inline namespace v0_1 {

Result<std::vector<int64_t>> ReadGroupInfo(const std::string& path) {
  return CatchOutOfMemory([&]() -> Result<std::vector<int64_t>> {
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                             Storage::Of(path).ReadWhole(path, kMaxGroupInfoBytes));
    if (!bytes.empty()) return RanksIn(path, bytes);
    return CorruptError(
        fmt::format("{}: expected a group_info file, found an empty one", Escape(path)));
  });
}

}  // namespace v0_1

}  // namespace reshard
