#include "tools/cli/rank_findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tools/page/text_format.h"

namespace reshard {
std::string ReplicasText(const ReplicaReport& replicas) {
  if (replicas.compared == 0) return "no replicas to compare";
  return fmt::format("replicas of {} compared: {}", FormatCount(replicas.compared, "parameter"),
                     replicas.differing == 0
                         ? "all equal"
                         : fmt::format("those of {} differ", replicas.differing));
}

std::string ReplicasText(const ReplicaReport& a, const ReplicaReport& b) {
  if (a.compared + b.compared == 0) return "no replicas to compare";
  std::vector<std::string> differing;
  if (a.differing > 0) differing.push_back(fmt::format("{} of A", a.differing));
  if (b.differing > 0) differing.push_back(fmt::format("{} of B", b.differing));
  return fmt::format("replicas of {} of A and {} of B compared: {}",
                     FormatCount(a.compared, "parameter"), b.compared,
                     differing.empty()
                         ? "all equal"
                         : fmt::format("those of {} differ", fmt::join(differing, " and ")));
}

std::string ReplicaLines(const ReplicaReport& replicas, std::string_view side) {
  std::string text;
  for (const ReplicaReport::Difference& difference : replicas.differences) {
    const std::string name = PrintableName(difference.parameter);
    for (const ReplicaReport::Pair& pair : difference.pairs) {
      text += pair.other_type
                  ? fmt::format("{}: rank {}{} has another dtype or shape than rank {}\n", name,
                                pair.rank, side, pair.reference)
                  : fmt::format("{}: rank {}{} differs from rank {} from byte {} of the shard on\n",
                                name, pair.rank, side, pair.reference, pair.offset);
    }
    const uint64_t more = difference.pair_count - difference.pairs.size();
    if (more > 0) text += fmt::format("{}: and {} more{}\n", name, FormatCount(more, "rank"), side);
  }
  const uint64_t more = replicas.differing - replicas.differences.size();
  if (more > 0)
    text += fmt::format("and replicas of {} more{}\n", FormatCount(more, "parameter"), side);
  return text;
}

std::vector<std::string> OwnValueNotes(const ReplicaReport& replicas, std::string_view side) {
  const std::vector<std::string>& names = replicas.own_values;
  if (names.empty()) return {};
  return {fmt::format("ranks{} hold values of their own of {}: {}", side,
                      FormatCount(names.size(), "parameter"), PrintableNames(names, names.size()))};
}

}  // namespace reshard
