#include "src/frontend/parameter_map.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"
#include "src/source/shard_grid.h"

namespace reshard {

Result<MappedStrategy> MapOf(const Strategy& strategy, const std::string& name) {
  MappedStrategy map{.path = strategy.path()};
  const int64_t devices = strategy.devices_per_stage();
  for (const Strategy::Stage& stage : strategy.stages()) {
    const ParameterLayout* const layout = stage.Find(name);
    if (layout == nullptr) continue;
    const size_t dims = layout->tensor_shape ? layout->tensor_shape->size() : DimsOf(*layout);
    const std::string where = fmt::format("{}: parameter {}", Escape(strategy.path()), Quote(name));
    RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid, MakeGrid(*layout, dims, where));
    if (layout->tensor_shape) {
      RESHARD_RETURN_IF_ERROR(grid.ShardShape(*layout->tensor_shape, where).status());
    }
    MappedStage made;
    made.stage = strategy.own_stage() + stage.number();
    made.first_rank = made.stage * devices;
    made.ranks = devices;
    made.cuts = grid.cuts();
    made.full_shape = layout->tensor_shape;
    made.boxes.resize(static_cast<size_t>(grid.parts()));
    for (size_t box = 0; box < made.boxes.size(); ++box) {
      made.boxes[box].parts = PartAt(static_cast<int64_t>(box), made.cuts);
    }
    for (int64_t local = 0; local < devices; ++local) {
      made.boxes[static_cast<size_t>(grid.PartNumberOf(local))].ranks.push_back(made.first_rank +
                                                                                local);
    }
    map.stages.push_back(std::move(made));
  }
  return map;
}

}  // namespace reshard
