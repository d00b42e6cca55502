#include "tests/fuzz/strategy_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/rank_list.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_loader.h"
#include "src/source/shard_grid.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/naive_reshard.h"

namespace reshard {
namespace {

// Beyond these the definition takes too long.
constexpr int64_t kMostRanks = 64;
constexpr size_t kMostLayouts = 32;

std::string GridFault(const ShardGrid& grid, const ParameterLayout& layout, size_t dims) {
  for (int64_t rank = 0; rank < grid.devices(); ++rank) {
    NaiveParts expected;
    try {
      expected = PartsByDefinition(layout, dims, rank);
    } catch (const std::exception& error) {
      return fmt::format("a layout has a grid, but {}", error.what());
    }
    const std::vector<int64_t> parts = grid.PartsOf(rank);
    if (parts != expected.part || grid.cuts() != expected.cuts) {
      return fmt::format("rank {} holds another part", rank);
    }
    if (grid.RankOf(parts, rank) != rank) {
      return fmt::format("rank {} is not the one that shares most with itself", rank);
    }
    std::vector<int64_t> replicas;
    for (int64_t other = 0; other < grid.devices(); ++other) {
      if (grid.PartsOf(other) == parts) replicas.push_back(other);
    }
    if (grid.Replicas(parts) != replicas) return fmt::format("other replicas of rank {}", rank);
  }
  return "";
}

std::string LayoutFault(const ParameterLayout& layout) {
  const size_t entries = layout.tensor_map[0].size();
  for (const size_t dims :
       {layout.tensor_map.size() == 1 ? entries : layout.tensor_map.size(), size_t{1}}) {
    if (dims > kMaxDims) continue;
    const auto grid = MakeGrid(layout, dims, "here");
    const std::string fault =
        grid.ok() ? GridFault(*grid, layout, dims) : RefusalFault(grid.status());
    if (!fault.empty()) return fault;
  }
  return "";
}

std::string RankListFault(const Strategy& strategy) {
  const ConversionRule same(&strategy, &strategy);
  const ConversionRule whole(&strategy, nullptr);
  const ConversionRule cut(nullptr, &strategy);
  for (int64_t rank = 0; rank < strategy.ranks(); ++rank) {
    const auto ranks = RankList(same, rank);
    if (!ranks.ok()) {
      const std::string fault = RefusalFault(ranks.status());
      if (!fault.empty()) return fault;
    } else if (strategy.stages().size() == 1 && *ranks != std::vector<int64_t>{rank}) {
      return fmt::format("from a layout to the same, rank {} needs other ranks", rank);
    }
    const auto from_whole = RankList(cut, rank);
    if (!from_whole.ok() || *from_whole != std::vector<int64_t>{0}) {
      return "full tensors are in rank 0 alone";
    }
  }
  const auto all = RankList(whole, 0);
  if (!all.ok()) return RefusalFault(all.status());
  if (!std::is_sorted(all->begin(), all->end()) || all->front() < 0 ||
      all->back() >= strategy.ranks()) {
    return "ranks that do not exist, or in no order";
  }
  return "";
}

// Where the target has a parameter more, the file is of a stage that is converted alone.
std::string StageAloneFault(const StrategyFile& file, const Strategy& strategy) {
  StrategyFile more = file;
  more.layouts.push_back(NamedLayout{"more", strategy.stages()[0][0].layout});
  const auto target = StrategyTables::FromFile(std::move(more));
  if (!target.ok()) return "refused with a layout more: " + target.status().message();
  const ConversionRule rule(&strategy, &*target);
  for (int64_t rank = 0; rank < target->ranks(); ++rank) {
    const auto ranks = RankList(rule, rank);
    const std::vector<int64_t> expected = {strategy.own_stage() * strategy.ranks() + rank};
    if (rule.stage_alone() && ranks.ok() && *ranks != expected) {
      return fmt::format("rank {} of a stage alone is another one", rank);
    }
  }
  return "";
}

// The file alone in a folder, merged, says the same under other names.
std::string MergeFault(std::string_view bytes, const Strategy& strategy) {
  const auto merged = MergeStageFiles("folder", {{"s.ckpt", std::string(bytes), {}}});
  if (!merged.ok()) return RefusalFault(merged.status());
  auto again = ParseStrategy("merged", merged->bytes);
  if (!again.ok()) return "merged, it is not read: " + again.status().message();
  const auto pipeline = StrategyTables::FromFile(*std::move(again));
  if (!pipeline.ok()) return "merged, it is refused: " + pipeline.status().message();
  if (!pipeline->is_pipeline() || pipeline->stages().size() != 1 ||
      !std::equal(pipeline->stages()[0].begin(), pipeline->stages()[0].end(),
                  strategy.stages()[0].begin(), strategy.stages()[0].end())) {
    return "merged, it says something else";
  }
  return "";
}

}  // namespace

std::string StrategyFault(const StrategyFile& file, std::string_view bytes) {
  if (file.layouts.empty()) return "a strategy without layouts";
  const auto strategy = StrategyTables::FromFile(file);
  if (!strategy.ok()) return RefusalFault(strategy.status());
  if (strategy->ranks() < 1 || strategy->ranks() > kMaxRanks) return "too many ranks";
  if (strategy->ranks() > kMostRanks || file.layouts.size() > kMostLayouts) return "";
  for (const Strategy::Stage& stage : strategy->stages()) {
    for (const NamedLayout& named : stage) {
      const std::string fault = LayoutFault(named.layout);
      if (!fault.empty()) return fault;
    }
  }
  std::string fault = RankListFault(*strategy);
  if (!fault.empty() || strategy->is_pipeline()) return fault;
  fault = StageAloneFault(file, *strategy);
  return fault.empty() ? MergeFault(bytes, *strategy) : fault;
}

}  // namespace reshard
