#include "src/mindspore/made_strategy.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/checked_strategy.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_writer.h"
#include "src/os/write_file.h"
#include "src/source/shard_grid.h"

namespace reshard {
namespace {

// Returns the layouts by stage, each name without its stage.
Result<std::vector<StageLayouts>> StagesOf(const Strategy& strategy) {
  const std::string name = Escape(NameOf(strategy));
  if (strategy.parameters.empty()) {
    return InvalidArgumentError(fmt::format("{}: has no parameters", name));
  }
  if (strategy.own_stage < 0 || strategy.own_stage >= kMaxRanks) {
    return InvalidArgumentError(
        fmt::format("{}: expected a stage of its own from 0 to {}, found {}", name, kMaxRanks - 1,
                    strategy.own_stage));
  }
  std::map<int64_t, StageLayouts> stages;
  for (const StrategyParameter& parameter : strategy.parameters) {
    if (parameter.stage < 0 || parameter.stage >= kMaxRanks) {
      return InvalidArgumentError(
          fmt::format("{}: parameter {}: expected a stage from 0 to {}, found {}", name,
                      Quote(parameter.name), kMaxRanks - 1, parameter.stage));
    }
    StageLayouts& stage = stages[parameter.stage];
    stage.stage = parameter.stage;
    NamedLayout& named = stage.layouts.emplace_back();
    named.name = parameter.name;
    named.layout.device_matrix = parameter.device_matrix;
    named.layout.tensor_map = parameter.tensor_map;
    named.layout.opt_weight_shard_step = parameter.opt_weight_shard_step;
    named.layout.opt_weight_shard_size = parameter.opt_weight_shard_size;
  }
  if (!strategy.is_pipeline && stages.size() > 1) {
    return InvalidArgumentError(fmt::format(
        "{}: has parameters of {} stages, but is not a pipeline's", name, stages.size()));
  }
  std::vector<StageLayouts> list;
  list.reserve(stages.size());
  if (!strategy.is_pipeline) stages.begin()->second.stage = strategy.own_stage;
  for (auto& [number, stage] : stages) list.push_back(std::move(stage));
  return list;
}

Result<std::string> Encode(const Strategy& strategy, StrategyEncoding encoding) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<StageLayouts> stages, StagesOf(strategy));
  return EncodeStrategy(stages, strategy.is_pipeline, encoding);
}

}  // namespace

std::string NameOf(const Strategy& strategy) {
  return strategy.path.empty() ? "the strategy" : strategy.path;
}

Result<CheckedStrategy> StrategyOf(const Strategy& strategy) {
  // A file has all the rules of what a strategy may be.
  RESHARD_ASSIGN_OR_RETURN(const std::string bytes, Encode(strategy, StrategyEncoding::kProtobuf));
  RESHARD_ASSIGN_OR_RETURN(StrategyFile file, ParseStrategy(NameOf(strategy), bytes));
  return CheckedStrategy::FromFile(std::move(file));
}

Status v0_1::WriteStrategy(const Strategy& strategy, const std::string& output, bool force) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_RETURN_IF_ERROR(StrategyOf(strategy).status());
    RESHARD_ASSIGN_OR_RETURN(const std::string bytes,
                             Encode(strategy, StrategyEncodingOfName(output)));
    return WriteFile(output, bytes, force);
  });
}

Result<Box> v0_1::ShardBox(const StrategyParameter& layout, const Shape& full_shape, int64_t rank) {
  return CatchOutOfMemory([&]() -> Result<Box> {
    Strategy one;
    one.parameters = {layout};
    one.parameters.front().stage = 0;
    // "0-w" would be a pipeline's.
    if (layout.name.empty() || SplitStagePrefix(layout.name)) {
      one.parameters.front().name = "parameter";
    }
    RESHARD_ASSIGN_OR_RETURN(const CheckedStrategy strategy, StrategyOf(one));
    const std::string where = fmt::format("parameter {}", Quote(layout.name));
    if (rank < 0 || rank >= strategy.devices_per_stage()) {
      return InvalidArgumentError(
          fmt::format("{}: expected a rank of the stage from 0 to {}, found {}", where,
                      strategy.devices_per_stage() - 1, rank));
    }
    RESHARD_ASSIGN_OR_RETURN(
        const ShardGrid grid,
        MakeGrid(strategy.stages().front().layouts().front().layout, full_shape.size(), where));
    RESHARD_ASSIGN_OR_RETURN(const Shape shard, grid.ShardShape(full_shape, where));
    return grid.BoxOf(rank, shard);
  });
}

}  // namespace reshard
