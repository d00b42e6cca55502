#include "src/mindspore/single_holders.h"

#include <algorithm>
#include <map>
#include <string>

#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"

namespace reshard {

Result<SingleHolders> SingleHolders::Make(const Strategy::Stage& layouts,
                                          const ParameterChoice& choice,
                                          const MemoryCheck& memory) {
  struct Named {
    std::string new_name;
    std::string_view name;  // in the strategy
    const ParameterLayout* layout;
  };
  const uint64_t of_layout = sizeof(Named) + sizeof(numbers_[0]) + sizeof(grid_of_[0]);
  RESHARD_RETURN_IF_ERROR(CheckMemory(memory, layouts.size() * of_layout));
  std::vector<Named> sorted;
  sorted.reserve(layouts.size());
  for (const Strategy::Entry entry : layouts) {
    const std::string name(entry.name);
    std::string made;
    RESHARD_ASSIGN_OR_RETURN(const std::string* const new_name, choice.TargetName(name, made));
    sorted.push_back({*new_name, entry.name, &entry.layout});
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Named& a, const Named& b) { return a.new_name < b.new_name; });
  SingleHolders holders;
  holders.numbers_.reserve(sorted.size());
  holders.grid_of_.reserve(sorted.size());
  std::map<const ParameterLayout*, std::optional<uint32_t>> known;  // equal ones are held once
  for (const Named& named : sorted) {
    const auto [place, is_new] = known.try_emplace(named.layout);
    if (is_new) {
      Result<ShardGrid> grid = MakeGrid(*named.layout, DimsOf(*named.layout), "");
      // Planning reports the error if the parameter is written.
      if (grid.ok()) {
        place->second = static_cast<uint32_t>(holders.grids_.size());
        holders.grids_.push_back(*std::move(grid));
      }
    }
    if (!place->second) continue;
    holders.numbers_.emplace_back(named.name, static_cast<uint32_t>(holders.grid_of_.size()));
    holders.grid_of_.push_back(*place->second);
  }
  std::sort(holders.numbers_.begin(), holders.numbers_.end());
  return holders;
}

std::optional<size_t> SingleHolders::NumberOf(std::string_view name) const {
  const auto found = std::lower_bound(
      numbers_.begin(), numbers_.end(), name,
      [](const auto& number, std::string_view wanted) { return number.first < wanted; });
  if (found == numbers_.end() || found->first != name) return std::nullopt;
  return found->second;
}

std::vector<bool> SingleHolders::KeptBy(int64_t local) const {
  // The ranks that take turns, this one among them, and how many turns there were.
  struct Group {
    std::vector<int64_t> ranks;
    size_t turns = 0;
  };
  std::map<std::vector<int64_t>, size_t> numbers;
  std::vector<Group> groups;
  std::vector<size_t> group_of;  // a grid's
  group_of.reserve(grids_.size());
  for (const ShardGrid& grid : grids_) {
    std::vector<int64_t> ranks = grid.Replicas(grid.PartsOf(local));
    const auto [place, is_new] = numbers.try_emplace(ranks, groups.size());
    if (is_new) groups.push_back({std::move(ranks)});
    group_of.push_back(place->second);
  }
  std::vector<bool> kept;
  kept.reserve(grid_of_.size());
  for (const uint32_t grid : grid_of_) {
    Group& group = groups[group_of[grid]];
    kept.push_back(group.ranks[group.turns++ % group.ranks.size()] == local);
  }
  return kept;
}

}  // namespace reshard
