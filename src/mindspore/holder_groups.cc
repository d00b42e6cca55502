#include "src/mindspore/holder_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/layout_grid.h"
#include "src/source/shard_grid.h"

namespace reshard {
namespace {

Status DifferentShards(const HolderGroups::List& list, int64_t a, int64_t b,
                       const std::string& strategy, std::string_view what) {
  return MismatchError(
      fmt::format("{}: the ranks {} and {} are in one list of ranks that hold the same weights {}, "
                  "but by {} they hold {}; is it from another run?",
                  Escape(list.path), a, b, FirstNumbers(list.ranks), Escape(strategy), what));
}

// Fails if the ranks of `list` hold different parts. `first` is the rank with the local rank 0.
Status CheckLayout(const HolderGroups::List& list, int64_t first, const Strategy::Entry& named,
                   const std::string& strategy) {
  // For a flat map of a one-dimensional tensor, the parts differ exactly if they differ with as
  // many dimensions as the map has entries.
  const auto& map = named.layout.tensor_map;
  const std::string where = fmt::format("{}: parameter {}", Escape(strategy), Quote(named.name));
  RESHARD_ASSIGN_OR_RETURN(
      const ShardGrid grid,
      MakeGrid(named.layout, map.size() == 1 ? map[0].size() : map.size(), where));
  const std::vector<int64_t> parts = grid.PartsOf(list.ranks.front() - first);
  for (const int64_t rank : list.ranks) {
    if (grid.PartsOf(rank - first) == parts) continue;
    return DifferentShards(list, list.ranks.front(), rank, strategy,
                           fmt::format("different shards of parameter {}", Quote(named.name)));
  }
  return {};
}

}  // namespace

Result<HolderGroups> HolderGroups::Make(std::vector<List> lists) {
  std::sort(lists.begin(), lists.end(),
            [](const List& a, const List& b) { return a.ranks < b.ranks; });
  HolderGroups groups;
  for (List& list : lists) {
    if (!groups.lists_.empty() && groups.lists_.back().ranks == list.ranks) continue;
    for (const int64_t rank : list.ranks) {
      const auto [place, added] = groups.list_of_.emplace(rank, groups.lists_.size());
      if (added) continue;
      const List& other = groups.lists_[place->second];
      return MismatchError(
          fmt::format("rank {} is in two lists of ranks that hold the same weights, {} in {} and "
                      "{} in {}; do the group_info files come from one run?",
                      rank, FirstNumbers(other.ranks), Escape(other.path), FirstNumbers(list.ranks),
                      Escape(list.path)));
    }
    groups.lists_.push_back(std::move(list));
  }
  return groups;
}

Status HolderGroups::CheckAgainst(const ConversionRule& rule) const {
  if (rule.source() == nullptr) return {};
  const std::string& strategy = rule.source()->path();
  const int64_t devices = rule.source_devices();
  const int64_t first = rule.SourceRank(0, 0);
  const int64_t end = first + devices * rule.source_stages();
  for (const List& list : lists_) {
    if (list.ranks.front() < first || list.ranks.back() >= end) {
      return MismatchError(fmt::format(
          "{}: expected ranks from {} to {} (by {}), found {}; is it from another run?",
          Escape(list.path), first, end - 1, Escape(strategy), FirstNumbers(list.ranks)));
    }
    const int64_t stage = (list.ranks.front() - first) / devices;
    if ((list.ranks.back() - first) / devices != stage) {
      return DifferentShards(list, list.ranks.front(), list.ranks.back(), strategy,
                             "different pipeline stages");
    }
    std::set<const ParameterLayout*> seen;  // models repeat them in every layer
    for (const Strategy::Entry named : rule.source()->stages()[static_cast<size_t>(stage)]) {
      if (!seen.insert(&named.layout).second) continue;
      RESHARD_RETURN_IF_ERROR(CheckLayout(list, first + stage * devices, named, strategy));
    }
  }
  return {};
}

std::span<const int64_t> HolderGroups::HoldersLike(int64_t rank) const {
  const auto found = list_of_.find(rank);
  if (found == list_of_.end()) return {};
  return lists_[found->second].ranks;
}

}  // namespace reshard
