#include "reshard/strategy.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/rank_list.h"
#include "src/mindspore/strategy_loader.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/file_use.h"
#include "src/os/write_file.h"
#include "src/source/shard_grid.h"

namespace reshard {
namespace {

struct StrategyPair {
  std::optional<Strategy> source;
  std::optional<Strategy> target;

  ConversionRule Rule() const { return {source ? &*source : nullptr, target ? &*target : nullptr}; }
};

Result<StrategyPair> LoadStrategies(const StrategyRef& source, const StrategyRef& target) {
  if (source.empty() && target.empty()) {
    return InvalidArgumentError("expected a source strategy or a target strategy, found none");
  }
  StrategyPair strategies;
  if (!source.empty()) {
    RESHARD_ASSIGN_OR_RETURN(strategies.source, LoadStrategy(source));
  }
  if (!target.empty()) {
    RESHARD_ASSIGN_OR_RETURN(strategies.target, LoadStrategy(target));
  }
  return strategies;
}

}  // namespace

inline namespace v0_1 {

Result<Strategy> ReadStrategy(const std::string& path) {
  return CatchOutOfMemory([&] { return LoadStrategy(path); });
}

Status WriteStrategy(const Strategy& strategy, const std::string& output, bool force) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                             EncodeStrategy(strategy, StrategyEncodingOfName(output)));
    return WriteFile(output, bytes, force);
  });
}

Result<Box> ShardBox(const NamedLayout& parameter, const Shape& full_shape, int64_t rank) {
  return CatchOutOfMemory([&]() -> Result<Box> {
    // The name may be one of a pipeline's, such as 0-w.
    const std::vector<std::vector<NamedLayout>> stages = {{parameter}};
    RESHARD_ASSIGN_OR_RETURN(const Strategy strategy, Strategy::MakePipeline(stages));
    const std::string where = fmt::format("parameter {}", Quote(parameter.name));
    if (rank < 0 || rank >= strategy.ranks()) {
      return InvalidArgumentError(
          fmt::format("{}: expected a rank of the stage from 0 to {}, found {}", where,
                      strategy.ranks() - 1, rank));
    }
    RESHARD_ASSIGN_OR_RETURN(
        const ShardGrid grid,
        MakeGrid(strategy.stages().front().front().layout, full_shape.size(), where));
    RESHARD_ASSIGN_OR_RETURN(const Shape shard, grid.ShardShape(full_shape, where));
    return grid.BoxOf(rank, shard);
  });
}

Result<StrategyReport> MergeStrategies(const std::string& folder, const std::string& output,
                                       bool force) {
  return CatchOutOfMemory([&]() -> Result<StrategyReport> {
    FileUse use;
    RESHARD_RETURN_IF_ERROR(use.AddOutput(output));
    RESHARD_ASSIGN_OR_RETURN(const MergedStrategy merged, MergeStrategyFolder(folder));
    RESHARD_RETURN_IF_ERROR(WriteFile(output, merged.bytes, force));
    return ReportOf(merged.strategy, merged.bytes.size());
  });
}

Result<std::vector<int64_t>> SourceRanks(int64_t rank, const StrategyRef& source,
                                         const StrategyRef& target) {
  return CatchOutOfMemory([&]() -> Result<std::vector<int64_t>> {
    RESHARD_ASSIGN_OR_RETURN(const StrategyPair strategies, LoadStrategies(source, target));
    return RankList(strategies.Rule(), rank);
  });
}

Status ForEachSourceRanks(
    const StrategyRef& source, const StrategyRef& target,
    const std::function<void(int64_t rank, const std::vector<int64_t>& source_ranks)>& visit) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_ASSIGN_OR_RETURN(const StrategyPair strategies, LoadStrategies(source, target));
    const ConversionRule rule = strategies.Rule();
    std::optional<RankLists> lists;
    for (int64_t rank = 0; rank < rule.target_ranks(); ++rank) {
      if (!lists || rule.TargetLocalRank(rank) == 0) {
        RESHARD_ASSIGN_OR_RETURN(lists, RankLists::Make(rule, rule.TargetStage(rank)));
      }
      visit(rank, lists->RanksOf(rank));
    }
    return {};
  });
}

}  // namespace v0_1
}  // namespace reshard
