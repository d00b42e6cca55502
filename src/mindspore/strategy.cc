#include "reshard/strategy.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reshard/file_use.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/mindspore/checked_strategy.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/rank_list.h"
#include "src/mindspore/strategy_loader.h"
#include "src/os/write_file.h"

namespace reshard {
namespace {

Strategy Summarize(const CheckedStrategy& strategy) {
  Strategy summary;
  summary.path = strategy.path();
  summary.is_pipeline = strategy.is_pipeline();
  summary.stages = static_cast<int64_t>(strategy.stages().size());
  summary.devices_per_stage = strategy.devices_per_stage();
  if (!strategy.is_pipeline()) summary.own_stage = strategy.own_stage();
  summary.notes = strategy.notes();
  int64_t number = 0;
  for (const StrategyStage& stage : strategy.stages()) {
    for (const auto [name, layout] : stage.layouts()) {
      summary.parameters.push_back({number, std::string(name), layout.device_matrix,
                                    layout.tensor_map, layout.opt_weight_shard_step,
                                    layout.opt_weight_shard_size, layout.tensor_shape, layout.field,
                                    layout.param_split_shape, layout.indices_offset});
    }
    ++number;
  }
  return summary;
}

struct StrategyPair {
  std::optional<CheckedStrategy> source;
  std::optional<CheckedStrategy> target;

  ConversionRule Rule() const { return {source ? &*source : nullptr, target ? &*target : nullptr}; }
};

Result<StrategyPair> LoadStrategies(const std::string& source, const std::string& target) {
  if (source.empty() && target.empty()) {
    return InvalidArgumentError("neither a source strategy nor a target strategy is given");
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

Result<Strategy> v0_1::ReadStrategy(const std::string& path) {
  return CatchOutOfMemory([&]() -> Result<Strategy> {
    RESHARD_ASSIGN_OR_RETURN(const CheckedStrategy strategy, LoadStrategy(path));
    return Summarize(strategy);
  });
}

Result<StrategyMergeReport> v0_1::MergeStrategies(const std::string& folder,
                                                  const std::string& output, bool force) {
  return CatchOutOfMemory([&]() -> Result<StrategyMergeReport> {
    FileUse use;
    RESHARD_RETURN_IF_ERROR(use.AddOutput(output));
    RESHARD_ASSIGN_OR_RETURN(const MergedStrategy merged, MergeStrategyFolder(folder));
    RESHARD_RETURN_IF_ERROR(WriteFile(output, merged.bytes, force));
    return StrategyMergeReport{merged.stages, merged.bytes.size(), merged.notes};
  });
}

Result<std::vector<int64_t>> v0_1::SourceRanks(int64_t rank, const std::string& source_strategy,
                                               const std::string& target_strategy) {
  return CatchOutOfMemory([&]() -> Result<std::vector<int64_t>> {
    RESHARD_ASSIGN_OR_RETURN(const StrategyPair strategies,
                             LoadStrategies(source_strategy, target_strategy));
    return RankList(strategies.Rule(), rank);
  });
}

Status v0_1::ForEachSourceRanks(
    const std::string& source_strategy, const std::string& target_strategy,
    const std::function<void(int64_t rank, const std::vector<int64_t>& source_ranks)>& visit) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_ASSIGN_OR_RETURN(const StrategyPair strategies,
                             LoadStrategies(source_strategy, target_strategy));
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

}  // namespace reshard
