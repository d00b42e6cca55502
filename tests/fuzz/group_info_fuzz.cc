// group_info files against libprotobuf's answer for the whole message.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/mindspore/foreign_file.h"
#include "src/mindspore/group_info.h"
#include "src/mindspore/strategy_tables.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/group_info_oracle.pb.h"

namespace reshard {
namespace {

// Fields below are those of a strategy where they are not a group's or the list's.
constexpr int kFirstFieldOfLaterVersions = 4;

// Returns the ranks of the list, or nothing where the file is to be refused.
std::optional<std::vector<int64_t>> ExpectedRanks(const oracle::GroupMap& map) {
  const auto& unknown = map.unknown_fields();
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (unknown.field(i).number() < kFirstFieldOfLaterVersions) return std::nullopt;
  }
  const oracle::GroupRanks& list = map.ckpt_restore_rank_list();
  if (!list.unknown_fields().empty()) return std::nullopt;
  std::vector<int64_t> ranks(list.dim().begin(), list.dim().end());
  std::sort(ranks.begin(), ranks.end());
  const bool twice = std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end();
  if (ranks.empty() || twice || ranks.back() >= kMaxRanks) return std::nullopt;
  return ranks;
}

bool IsForeign(std::string_view bytes) {
  const std::string_view kind = KindOfForeignFile(bytes);
  return !kind.empty() && kind != kGroupInfoKind;
}

}  // namespace

std::string FuzzGroupInfo(std::string_view bytes) {
  oracle::GroupMap map;
  const bool is_message = map.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  const auto expected = is_message ? ExpectedRanks(map) : std::nullopt;
  const auto found = ParseGroupInfo("group_info.pb", bytes);
  if (!found.ok()) {
    std::string fault = RefusalFault(found.status(), "group_info.pb");
    if (!fault.empty()) return fault;
    return expected && !IsForeign(bytes) ? "refused: " + found.status().message() : "";
  }
  const bool ascending =
      std::adjacent_find(found->begin(), found->end(), std::greater_equal<>()) == found->end();
  if (found->empty() || !ascending || found->front() < 0 || found->back() >= kMaxRanks) {
    return "ranks that cannot be, or in no order";
  }
  // libprotobuf's messages refuse keys and lengths in more bytes than they need, its streams, by
  // which the list is found here, do not.
  if (!is_message) return "";
  if (!expected) return "ranks out of a file without a list";
  return *found == *expected ? "" : "other ranks";
}

}  // namespace reshard
