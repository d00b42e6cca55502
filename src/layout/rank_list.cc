#include "src/layout/rank_list.h"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/layout/shard_grid.h"

namespace reshard {
namespace {

// Strategies hold no shapes. Returns how many dimensions the tensor has to have; with one flat
// tensor map on both sides of equally many entries the tensor is taken not to be one-dimensional.
size_t DimsOf(const ParameterLayout& source, const ParameterLayout* target) {
  const auto dims = [](const ParameterLayout& layout) {
    return layout.tensor_map.size() == 1 ? layout.tensor_map[0].size() : layout.tensor_map.size();
  };
  // A one-dimensional nested map looks like a flat one; where a JSON strategy states the shape,
  // that tells.
  for (const ParameterLayout* layout : {&source, target}) {
    if (layout != nullptr && layout->tensor_shape && layout->tensor_shape->size() == 1 &&
        source.tensor_map.size() == 1 && (target == nullptr || target->tensor_map.size() == 1)) {
      return 1;
    }
  }
  if (target == nullptr || dims(source) == dims(*target)) return dims(source);
  return source.tensor_map.size() == 1 && target->tensor_map.size() == 1 ? 1 : dims(source);
}

// Adds the local source ranks that hold what `target_grid` gives to `target_local`.
Status AddNeeded(const ShardGrid& source_grid, const ShardGrid& target_grid, int64_t target_local,
                 int64_t preferred, std::string_view where, std::set<int64_t>& ranks) {
  Shape full;
  for (size_t d = 0; d < source_grid.cuts().size(); ++d) {
    const int64_t a = source_grid.cuts()[d];
    const int64_t b = target_grid.cuts()[d];
    const auto lcm = CheckedMul(a / std::gcd(a, b), b);
    if (!lcm) return MismatchError(fmt::format("{}: the cuts {} and {} are too many", where, a, b));
    full.push_back(*lcm);
  }
  RESHARD_ASSIGN_OR_RETURN(const Shape source_shard, source_grid.ShardShape(full, where));
  RESHARD_ASSIGN_OR_RETURN(const Shape target_shard, target_grid.ShardShape(full, where));
  const Box box = target_grid.BoxOf(target_local, target_shard);
  source_grid.ForEachOverlap(box, source_shard, [&](const std::vector<int64_t>& parts) {
    ranks.insert(source_grid.RankOf(parts, preferred));
    return true;
  });
  return {};
}

}  // namespace

Result<std::vector<int64_t>> RankList(const ConversionRule& rule, int64_t rank) {
  if (rank < 0 || rank >= rule.target_ranks()) {
    return InvalidArgumentError(
        rule.target() == nullptr
            ? fmt::format(
                  "rank {} is not a target rank: without a target strategy there is only rank 0",
                  rank)
            : fmt::format("rank {} is not a target rank: {} has the ranks 0 to {}", rank,
                          Escape(rule.target()->path()), rule.target_ranks() - 1));
  }
  if (rule.source() == nullptr) return std::vector<int64_t>{0};

  const int64_t target_stage = rule.TargetStage(rank);
  const int64_t target_local = rule.TargetLocalRank(rank);
  const int64_t preferred = rule.CopyRank(rank);
  const auto less = [](const auto& a, const auto& b) {
    return std::pair(*a.first, a.second ? *a.second : ParameterLayout()) <
           std::pair(*b.first, b.second ? *b.second : ParameterLayout());
  };
  std::set<int64_t> ranks;
  for (const int64_t stage : rule.NeededSourceStages(target_stage)) {
    std::set<int64_t> local = {preferred};
    // Models repeat a few layouts in every layer; each pair is worked out once.
    std::set<std::pair<const ParameterLayout*, const ParameterLayout*>, decltype(less)> seen(less);
    for (const auto& [name, layout] :
         rule.source()->stages()[static_cast<size_t>(stage)].layouts()) {
      if (rule.FateOf(name, target_stage) != ConversionRule::Fate::kConvert ||
          rule.LowestSourceStage(name) != stage) {
        continue;
      }
      const ParameterLayout* target_layout =
          rule.target() == nullptr
              ? nullptr
              : rule.target()->stages()[static_cast<size_t>(target_stage)].Find(name);
      if (!seen.emplace(&layout, target_layout).second) continue;
      const size_t dims = DimsOf(layout, target_layout);
      const std::string where =
          fmt::format("{}: parameter {}", Escape(rule.source()->path()), Quote(name));
      RESHARD_ASSIGN_OR_RETURN(const ShardGrid source_grid, ShardGrid::Make(layout, dims, where));
      ShardGrid target_grid = ShardGrid::Whole(dims);
      if (target_layout != nullptr) {
        const std::string target_where =
            fmt::format("{}: parameter {}", Escape(rule.target()->path()), Quote(name));
        RESHARD_ASSIGN_OR_RETURN(target_grid, ShardGrid::Make(*target_layout, dims, target_where));
      }
      RESHARD_RETURN_IF_ERROR(
          AddNeeded(source_grid, target_grid, target_local, preferred, where, local));
    }
    for (const int64_t l : local) ranks.insert(rule.SourceRank(stage, l));
  }
  return std::vector<int64_t>(ranks.begin(), ranks.end());
}

}  // namespace reshard
