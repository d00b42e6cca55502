#include "src/convert/target_groups.h"

#include <map>

namespace reshard {

std::vector<std::vector<size_t>> GroupTargets(const std::vector<TargetFileSummary>& targets,
                                              const std::vector<TargetShare>& parts, size_t most) {
  std::vector<std::vector<size_t>> groups;
  std::map<std::vector<int64_t>, size_t> open;  // source ranks to the group that still takes files
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto [found, added] =
        open.try_emplace(targets[parts[i].target].source_ranks, groups.size());
    if (added || groups[found->second].size() >= most) {
      found->second = groups.size();
      groups.emplace_back();
    }
    groups[found->second].push_back(i);
  }
  return groups;
}

}  // namespace reshard
