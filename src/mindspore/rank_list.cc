#include "src/mindspore/rank_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"

namespace reshard {
namespace {

// Strategies hold no shapes. Returns the number of dimensions that the tensor has to have. If both
// sides have a flat tensor map with equally many entries, the tensor is assumed not to be
// one-dimensional.
size_t DimsOf(const ParameterLayout& source, const ParameterLayout* target) {
  const auto dims = [](const ParameterLayout& layout) {
    return layout.tensor_map.size() == 1 ? layout.tensor_map[0].size() : layout.tensor_map.size();
  };
  // A one-dimensional nested map looks like a flat one. If a JSON strategy states the shape, that
  // decides.
  for (const ParameterLayout* layout : {&source, target}) {
    if (layout != nullptr && layout->tensor_shape && layout->tensor_shape->size() == 1 &&
        source.tensor_map.size() == 1 && (target == nullptr || target->tensor_map.size() == 1)) {
      return 1;
    }
  }
  if (target == nullptr || dims(source) == dims(*target)) return dims(source);
  return source.tensor_map.size() == 1 && target->tensor_map.size() == 1 ? 1 : dims(source);
}

// Returns the least shape of a tensor that both grids cut.
Result<Shape> LeastShape(const ShardGrid& source, const ShardGrid& target, std::string_view where) {
  Shape full;
  for (size_t d = 0; d < source.cuts().size(); ++d) {
    const int64_t a = source.cuts()[d];
    const int64_t b = target.cuts()[d];
    const auto lcm = CheckedMul(a / std::gcd(a, b), b);
    if (!lcm)
      return MismatchError(fmt::format("{}: the cuts {} and {} make too many parts", where, a, b));
    full.push_back(*lcm);
  }
  return full;
}

}  // namespace

Status CheckTargetRank(const ConversionRule& rule, int64_t rank) {
  if (rank >= 0 && rank < rule.target_ranks()) return {};
  return InvalidArgumentError(
      rule.target() == nullptr
          ? fmt::format(
                "rank {} is not a target rank: without a target strategy there is only rank 0",
                rank)
          : fmt::format("rank {} is not a target rank: {} has the ranks 0 to {}", rank,
                        Escape(rule.target()->path()), rule.target_ranks() - 1));
}

Result<RankLists> RankLists::Make(const ConversionRule& rule, int64_t target_stage) {
  RankLists lists(rule);
  for (const int64_t stage : rule.NeededSourceStages(target_stage)) {
    RESHARD_RETURN_IF_ERROR(lists.AddStage(stage, target_stage));
  }
  return lists;
}

Status RankLists::AddStage(int64_t number, int64_t target_stage) {
  Stage& stage = stages_.emplace_back();
  stage.number = number;
  if (rule_->source() == nullptr) return {};
  // A stage holds equal layouts once.
  std::set<std::pair<const ParameterLayout*, const ParameterLayout*>> seen;
  for (const auto [name, layout] : rule_->source()->stages()[static_cast<size_t>(number)]) {
    if (rule_->FateOf(name, target_stage) != ConversionRule::Fate::kConvert ||
        rule_->LowestSourceStage(name) != number) {
      continue;
    }
    const ParameterLayout* target_layout =
        rule_->target() == nullptr
            ? nullptr
            : rule_->target()->stages()[static_cast<size_t>(target_stage)].Find(name);
    if (!seen.emplace(&layout, target_layout).second) continue;
    const size_t dims = DimsOf(layout, target_layout);
    const std::string where =
        fmt::format("{}: parameter {}", Escape(rule_->source()->path()), Quote(name));
    Pair pair{ShardGrid::Whole(dims), ShardGrid::Whole(dims), {}, {}};
    RESHARD_ASSIGN_OR_RETURN(pair.source, MakeGrid(layout, dims, where));
    if (target_layout != nullptr) {
      const std::string target_where =
          fmt::format("{}: parameter {}", Escape(rule_->target()->path()), Quote(name));
      RESHARD_ASSIGN_OR_RETURN(pair.target, MakeGrid(*target_layout, dims, target_where));
    }
    RESHARD_ASSIGN_OR_RETURN(const Shape full, LeastShape(pair.source, pair.target, where));
    RESHARD_ASSIGN_OR_RETURN(pair.source_shard, pair.source.ShardShape(full, where));
    RESHARD_ASSIGN_OR_RETURN(pair.target_shard, pair.target.ShardShape(full, where));
    stage.pairs.push_back(std::move(pair));
  }
  return {};
}

std::vector<RankLists::Source> RankLists::SourcesOf(int64_t rank) const {
  const int64_t target_local = rule_->TargetLocalRank(rank);
  const int64_t preferred = rule_->CopyRank(rank);
  std::vector<Source> sources;
  for (const Stage& stage : stages_) {
    const auto first = std::ssize(sources);
    sources.push_back({stage.number, preferred});
    for (const Pair& pair : stage.pairs) {
      const Box box = pair.target.BoxOf(target_local, pair.target_shard);
      pair.source.ForEachOverlap(box, pair.source_shard, [&](const std::vector<int64_t>& parts) {
        sources.push_back({stage.number, pair.source.RankOf(parts, preferred)});
        return true;
      });
    }
    std::sort(sources.begin() + first, sources.end());
    sources.erase(std::unique(sources.begin() + first, sources.end()), sources.end());
  }
  return sources;
}

std::vector<int64_t> RankLists::RanksOf(int64_t rank) const {
  std::vector<int64_t> ranks;
  for (const auto& [stage, local] : SourcesOf(rank)) {
    ranks.push_back(rule_->SourceRank(stage, local));
  }
  return ranks;
}

Result<std::vector<int64_t>> RankList(const ConversionRule& rule, int64_t rank) {
  RESHARD_RETURN_IF_ERROR(CheckTargetRank(rule, rank));
  RESHARD_ASSIGN_OR_RETURN(const RankLists lists, RankLists::Make(rule, rule.TargetStage(rank)));
  return lists.RanksOf(rank);
}

}  // namespace reshard
