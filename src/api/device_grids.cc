#include "src/api/device_grids.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "reshard/optimizer_names.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"
#include "src/source/shard_grid.h"

namespace reshard {
namespace {

// By its name in the target; strategies and files have its name in the source.
using Parameter = std::pair<const std::string, PlanNotes::Parameter>;

// The grid of a layout, or of whole tensors where there is none.
Result<ShardGrid> MakeGrid(const Strategy* strategy, int64_t stage, const Parameter& parameter) {
  const PlanNotes::Parameter& what = parameter.second;
  const std::string& name = what.source_name;
  const ParameterLayout* layout =
      strategy == nullptr ? nullptr : strategy->stages()[static_cast<size_t>(stage)].Find(name);
  const size_t dims = what.full_shape.size();
  if (layout == nullptr) return ShardGrid::Whole(dims);
  return MakeGrid(*layout, dims,
                  fmt::format("{}: parameter {}", Escape(strategy->path()), Quote(name)));
}

// Collects the ranks of one side, stage by stage.
class GridBuilder {
 public:
  GridBuilder(int64_t stages, int64_t devices, const Shape& full_shape)
      : devices_(devices), full_shape_(full_shape) {
    const int64_t ranks = stages * devices;
    grid_.ranks_per_cell = (ranks + kMostGridCells - 1) / kMostGridCells;
    grid_.cells.resize(
        static_cast<size_t>((ranks + grid_.ranks_per_cell - 1) / grid_.ranks_per_cell));
  }

  // Stages come in ascending order.
  void AddStage(int64_t stage, const ShardGrid& cut) {
    if (grid_.stages.empty()) {
      grid_.cuts = cut.cuts();
      grid_.shards = cut.parts();
      for (size_t d = 0; d < full_shape_.size(); ++d) {
        grid_.shard_shape.push_back(full_shape_[d] / cut.cuts()[d]);
      }
    }
    grid_.stages.push_back(stage);
    std::map<int64_t, int64_t> holders;  // ranks so far, by shard
    for (int64_t local = 0; local < devices_; ++local) {
      const int64_t shard = PartNumber(cut.PartsOf(local), cut.cuts());
      const int64_t replica = holders[shard]++;
      grid_.replicas = std::max(grid_.replicas, replica + 1);
      const int64_t rank = stage * devices_ + local;
      if (rank % grid_.ranks_per_cell != 0) continue;
      grid_.cells[static_cast<size_t>(rank / grid_.ranks_per_cell)] = {shard, replica};
    }
  }

  DeviceGrid Take() { return std::move(grid_); }

 private:
  const int64_t devices_;
  const Shape& full_shape_;
  DeviceGrid grid_;
};

Result<DeviceGrid> SourceGrid(const OpenedSource& source, const Parameter& parameter) {
  const ConversionRule& rule = source.rule();
  GridBuilder builder(rule.source_stages(), rule.source_devices(), parameter.second.full_shape);
  const std::string& name = parameter.second.source_name;
  const bool in_strategy = rule.source() != nullptr && rule.source()->Contains(name);
  for (int64_t stage = 0; stage < rule.source_stages(); ++stage) {
    bool has = rule.source() == nullptr;
    if (in_strategy) {
      has = rule.source()->stages()[static_cast<size_t>(stage)].Find(name) != nullptr;
    } else if (rule.source() != nullptr) {  // no layout cuts it: the files tell
      RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source.tensors().IndexOf(stage, 0));
      has = index && index->Find(name) != nullptr;
    }
    if (!has) continue;
    RESHARD_ASSIGN_OR_RETURN(const ShardGrid cut, MakeGrid(rule.source(), stage, parameter));
    builder.AddStage(stage, cut);
  }
  return builder.Take();
}

// The first rank of each target stage that is planned.
std::map<int64_t, int64_t> PlannedStages(const PlanReport& plan, const ConversionRule& rule) {
  std::map<int64_t, int64_t> stages;
  for (const TargetFileSummary& target : plan.targets) {
    stages.emplace(rule.TargetStage(target.rank), target.rank);
  }
  return stages;
}

Result<DeviceGrid> TargetGrid(const OpenedSource& source, const MindSporeTarget& planner,
                              const PlanReport& plan, const Parameter& parameter) {
  const ConversionRule& rule = source.rule();
  const int64_t stages =
      rule.target() == nullptr ? 1 : static_cast<int64_t>(rule.target()->stages().size());
  GridBuilder builder(stages, rule.target_ranks() / stages, parameter.second.full_shape);
  for (const auto& [stage, rank] : PlannedStages(plan, rule)) {
    PlanNotes notes;  // all has been said
    RESHARD_ASSIGN_OR_RETURN(const MindSporeTarget::Selection selection,
                             planner.Select(rank, notes));
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), parameter.second.source_name) != names.end();
    };
    if (has(selection.converted)) {
      RESHARD_ASSIGN_OR_RETURN(const ShardGrid cut, MakeGrid(rule.target(), stage, parameter));
      builder.AddStage(stage, cut);
    } else if (has(selection.copied)) {
      builder.AddStage(stage, ShardGrid::Whole(parameter.second.full_shape.size()));
    }
  }
  return builder.Take();
}

bool IsCut(const Strategy* strategy, const Parameter& parameter) {
  if (strategy == nullptr) return false;
  const std::optional<int64_t> stage = strategy->LowestStage(parameter.second.source_name);
  if (!stage) return false;
  const Result<ShardGrid> grid = MakeGrid(strategy, *stage, parameter);
  return grid.ok() && grid->parts() > 1;
}

// The first that counts of what tells most: that it is cut, that it is no optimizer's copy, its
// size. Null where there is no parameter.
const Parameter* LargestCut(const ConversionRule& rule, const PlanNotes& notes) {
  using Worth = std::tuple<bool, bool, uint64_t>;
  const Parameter* largest = nullptr;
  Worth most;
  for (const Parameter& parameter : notes.parameters) {
    const bool cut = IsCut(rule.source(), parameter) || IsCut(rule.target(), parameter);
    const Worth worth(cut, OptimizerGroup(parameter.second.source_name).empty(),
                      parameter.second.bytes);
    if (largest != nullptr && worth <= most) continue;
    largest = &parameter;
    most = worth;
  }
  return largest;
}

}  // namespace

Result<std::vector<ParameterGrids>> MakeDeviceGrids(const OpenedSource& source,
                                                    const MindSporeTarget& planner,
                                                    const PlanReport& plan, const PlanNotes& notes,
                                                    const std::vector<std::string>& names) {
  std::vector<const Parameter*> chosen;
  for (const std::string& name : names) {
    const auto found = notes.parameters.find(name);
    if (found == notes.parameters.end()) {
      return NotFoundError(
          fmt::format("none of the {} parameters that are written is {}; `reshard inspect` lists "
                      "the names",
                      notes.parameters.size(), Quote(name)));
    }
    chosen.push_back(&*found);
  }
  if (names.empty()) {
    const Parameter* largest = LargestCut(source.rule(), notes);
    if (largest != nullptr) chosen.push_back(largest);
  }
  std::vector<ParameterGrids> grids;
  for (const Parameter* parameter : chosen) {
    const PlanNotes::Parameter& what = parameter->second;
    ParameterGrids both{{parameter->first, what.kind, what.dtype, what.full_shape, what.bytes}, {}, {}};
    RESHARD_ASSIGN_OR_RETURN(both.source, SourceGrid(source, *parameter));
    RESHARD_ASSIGN_OR_RETURN(both.target, TargetGrid(source, planner, plan, *parameter));
    grids.push_back(std::move(both));
  }
  return grids;
}

}  // namespace reshard
