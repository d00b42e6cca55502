#include "src/mindspore/single_holders.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"

namespace reshard {

Result<SingleHolders> SingleHolders::Make(const Strategy::Stage& layouts,
                                          const ParameterChoice& choice) {
  std::map<std::string, Strategy::Entry> sorted;  // by the new names
  for (const Strategy::Entry entry : layouts) {
    const std::string name(entry.name);
    std::string made;
    RESHARD_ASSIGN_OR_RETURN(const std::string* const new_name, choice.TargetName(name, made));
    sorted.emplace(*new_name, entry);
  }
  SingleHolders holders;
  std::map<const ParameterLayout*, std::optional<size_t>> known;  // equal ones are held once
  for (const auto& [new_name, entry] : sorted) {
    const auto [place, is_new] = known.try_emplace(&entry.layout);
    if (is_new) {
      Result<ShardGrid> grid = MakeGrid(entry.layout, DimsOf(entry.layout), "");
      // Planning reports the error if the parameter is written.
      if (grid.ok()) {
        place->second = holders.grids_.size();
        holders.grids_.push_back(*std::move(grid));
      }
    }
    if (!place->second) continue;
    holders.numbers_.emplace(entry.name, holders.grid_of_.size());
    holders.grid_of_.push_back(*place->second);
  }
  return holders;
}

std::optional<size_t> SingleHolders::NumberOf(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
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
  for (const size_t grid : grid_of_) {
    Group& group = groups[group_of[grid]];
    kept.push_back(group.ranks[group.turns++ % group.ranks.size()] == local);
  }
  return kept;
}

}  // namespace reshard
