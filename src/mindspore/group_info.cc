#include "src/mindspore/group_info.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/byte_source.h"
#include "src/mindspore/foreign_file.h"
#include "src/mindspore/group_info.pb.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/strategy.h"

namespace reshard {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Keys (number << 3 | wire type) of a ParallelGroupMap.
constexpr uint32_t kGroupKey = 0x0a;
constexpr uint32_t kRestoreListKey = 0x12;
// Fields beyond these may be of a later version; lower ones of other types are of other files.
constexpr int kLastForeignField = 3;

// A list of kMaxRanks ranks has fewer, in every form that it may be written in.
constexpr uint64_t kMaxListBytes = uint64_t{8} << 20;

Status NotGroupInfo(const std::string& path, uint64_t offset, std::string_view what) {
  return CorruptError(fmt::format("{}: expected a group_info file, found {} at offset {}",
                                  Escape(path), what, offset));
}

// Adds the ranks of every list of the file to `ranks`; there is one, ordinarily.
Status MergeLists(const std::string& path, std::string_view bytes, ParallelGroupRanks& ranks) {
  const auto size = static_cast<int>(bytes.size());
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  while (input.CurrentPosition() < size) {
    const auto offset = static_cast<uint64_t>(input.CurrentPosition());
    const uint32_t key = input.ReadTag();
    if (WireFormatLite::GetTagFieldNumber(key) == 0) {
      return NotGroupInfo(path, offset, "bytes that begin no field");
    }
    if (key != kGroupKey && key != kRestoreListKey) {
      if (WireFormatLite::GetTagFieldNumber(key) > kLastForeignField &&
          WireFormatLite::SkipField(&input, key)) {
        continue;
      }
      return NotGroupInfo(path, offset, fmt::format("a field {} that it does not have", key >> 3));
    }
    uint64_t length = 0;
    if (!input.ReadVarint64(&length)) return NotGroupInfo(path, offset, "a malformed length");
    const auto begin = static_cast<uint64_t>(input.CurrentPosition());
    if (length > bytes.size() - begin) {
      return NotGroupInfo(path, offset,
                          fmt::format("a field of {} bytes where {} are left; is the file cut off?",
                                      length, bytes.size() - begin));
    }
    input.Skip(static_cast<int>(length));
    if (key == kGroupKey) continue;
    if (length > kMaxListBytes) {
      return NotGroupInfo(path, offset,
                          fmt::format("a list of {} bytes (more than {})", length, kMaxListBytes));
    }
    ParallelGroupRanks list;
    if (!list.ParsePartialFromArray(bytes.data() + begin, static_cast<int>(length)) ||
        !list.unknown_fields().empty()) {
      return NotGroupInfo(path, offset, "a field 2 that is no list of ranks");
    }
    ranks.MergeFrom(list);
    if (ranks.dim_size() > kMaxRanks) {
      return NotGroupInfo(path, offset, fmt::format("a list of more than {} ranks", kMaxRanks));
    }
  }
  return {};
}

Status ReadList(const std::string& path, std::vector<HolderGroups::List>& lists) {
  RESHARD_ASSIGN_OR_RETURN(const ByteSource file, ByteSource::Open(path));
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

Result<std::vector<int64_t>> ParseGroupInfo(const std::string& path, std::string_view bytes) {
  const std::string_view kind = KindOfForeignFile(bytes);
  if (!kind.empty() && kind != kGroupInfoKind) {
    return CorruptError(
        fmt::format("{}: expected a group_info file, found {}", Escape(path), kind));
  }
  if (bytes.size() > kMaxGroupInfoBytes) {
    return CorruptError(fmt::format("{}: expected a group_info file of at most {} bytes, found {}",
                                    Escape(path), kMaxGroupInfoBytes, bytes.size()));
  }
  ParallelGroupRanks list;
  RESHARD_RETURN_IF_ERROR(MergeLists(path, bytes, list));
  std::vector<int64_t> ranks(list.dim().begin(), list.dim().end());
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

}  // namespace reshard
