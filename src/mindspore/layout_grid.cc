#include "src/mindspore/layout_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

using Digit = ShardGrid::Digit;

// The parts of a grid.
struct GridParts {
  int64_t devices = 1;
  std::vector<int64_t> cuts;
  std::vector<Digit> digits;
  int64_t modulus = 0;
};

std::string ToText(const std::vector<std::vector<int64_t>>& tensor_map) {
  if (tensor_map.size() == 1) return FirstNumbers(tensor_map[0]);
  constexpr size_t kMostDims = 20;
  FirstFew dims(kMostDims);
  for (const std::vector<int64_t>& axes : tensor_map) dims.Add(FirstNumbers(axes));
  return '[' + dims.Joined() + ']';
}

Status LayoutError(std::string_view where, std::string_view what) {
  return MismatchError(fmt::format("{}: {}", where, what));
}

// Returns the axes that split each of `dims` dimensions.
Result<std::vector<std::vector<int64_t>>> AxesOfDims(const ParameterLayout& layout, size_t dims,
                                                     std::string_view where) {
  const auto& map = layout.tensor_map;
  if (map.size() == 1) {
    const std::vector<int64_t>& entries = map.front();
    if (entries.size() == dims) {
      std::vector<std::vector<int64_t>> axes;
      axes.reserve(dims);
      for (const int64_t entry : entries) axes.push_back({entry});
      return axes;
    }
    if (dims == 1) return map;
  } else if (map.size() == dims) {
    return map;
  }
  return LayoutError(where, fmt::format("the tensor map {} does not fit a tensor of {} dimensions; "
                                        "is it the strategy of this checkpoint?",
                                        ToText(map), dims));
}

// Takes the axes that the optimizer shards are placed on, and the parts of axes that are left, from
// `axes`.
Status PlaceOptimizerShards(const ParameterLayout& layout, std::vector<Digit>& axes,
                            GridParts& grid, std::string_view where) {
  const int64_t step = layout.opt_weight_shard_step;
  const int64_t size = layout.opt_weight_shard_size;
  if (step == 0 || size == 0) return {};
  const auto error = [&](std::string_view why) {
    return LayoutError(where, fmt::format("optimizer sharding (opt_weight_shard_size {}, "
                                          "opt_weight_shard_step {}) cannot be placed on the "
                                          "device matrix {}: {}",
                                          size, step, layout.device_matrix, why));
  };
  if (size < -1 || step < 0) return error("expected a step from 0 on, and a size from -1 on");
  if (grid.cuts.empty()) return error("a scalar has no first dimension");

  std::vector<Digit> free;
  int64_t replicas = 1;
  for (const Digit& axis : axes) {
    if (axis.dim != ShardGrid::kFree || axis.size == 1) continue;
    free.push_back(axis);
    replicas *= axis.size;
  }
  if (free.empty()) return error("the tensor map leaves no device axis free");
  const bool nested = layout.tensor_map.size() > 1;
  if (free.size() == 1 && !nested && step != free[0].stride) {
    return error(
        fmt::format("with one free axis, the step has to be {}, the product of the axes "
                    "right of it",
                    free[0].stride));
  }
  const int64_t parts = size == -1 ? replicas : size;
  if (parts > replicas) return error(fmt::format("there are only {} replicas", replicas));

  // From the right: whole axes, and at last the inner part of an axis.
  std::vector<Digit> taken;
  std::vector<Digit> rest = axes;
  int64_t left = parts;
  for (size_t i = rest.size(); i-- > 0 && left > 1;) {
    Digit& axis = rest[i];
    if (axis.dim != ShardGrid::kFree) continue;
    const int64_t inner = std::gcd(left, axis.size);
    if (inner != left && inner != axis.size) {
      if (replicas != grid.devices) return error(fmt::format("{} does not fit the axes", parts));
      grid.modulus = parts;  // fully replicated: the rank itself is counted, and no axis is taken
      grid.cuts[0] *= parts;
      return {};
    }
    taken.push_back({inner, axis.stride, 0});
    axis = {axis.size / inner, axis.stride * inner, ShardGrid::kFree};
    left /= inner;
  }
  grid.cuts[0] *= parts;
  grid.digits.insert(grid.digits.end(), taken.rbegin(), taken.rend());
  axes = std::move(rest);
  return {};
}

}  // namespace

size_t DimsOf(const ParameterLayout& layout) {
  const auto& map = layout.tensor_map;
  return map.size() == 1 ? map.front().size() : map.size();
}

Result<ShardGrid> MakeGrid(const ParameterLayout& layout, size_t dims, std::string_view where) {
  RESHARD_ASSIGN_OR_RETURN(const auto axes_of_dims, AxesOfDims(layout, dims, where));

  GridParts grid;
  grid.cuts.assign(dims, 1);
  const auto& matrix = layout.device_matrix;
  std::vector<Digit> axes(matrix.size());  // as they stand in the device matrix
  for (size_t i = matrix.size(); i-- > 0;) {
    axes[i] = {matrix[i], grid.devices, ShardGrid::kFree};
    const auto devices = CheckedMul(grid.devices, matrix[i]);
    if (matrix[i] < 1 || !devices) {
      return LayoutError(where, fmt::format("the device matrix {} is not one of devices", matrix));
    }
    grid.devices = *devices;
  }

  for (size_t d = 0; d < dims; ++d) {
    for (const int64_t entry : axes_of_dims[d]) {
      if (entry == -1) continue;
      if (entry < -1 || entry >= static_cast<int64_t>(axes.size())) {
        return LayoutError(where,
                           fmt::format("the tensor map names device axis {}, but the device matrix "
                                       "{} has {} axes (counted from the right, from 0)",
                                       entry, matrix, axes.size()));
      }
      Digit& axis = axes[axes.size() - 1 - static_cast<size_t>(entry)];
      if (axis.size == 1) continue;
      if (axis.dim != ShardGrid::kFree) {
        return LayoutError(where, fmt::format("the tensor map uses device axis {} twice", entry));
      }
      axis.dim = static_cast<int>(d);
      grid.cuts[d] *= axis.size;
      grid.digits.push_back(axis);
    }
  }

  RESHARD_RETURN_IF_ERROR(PlaceOptimizerShards(layout, axes, grid, where));
  for (const Digit& axis : axes) {
    if (axis.dim == ShardGrid::kFree && axis.size > 1) grid.digits.push_back(axis);
  }
  return ShardGrid(grid.devices, std::move(grid.cuts), std::move(grid.digits), grid.modulus);
}

Result<SharedGrid> GridCache::Get(const ParameterLayout& layout, size_t dims,
                                  std::string_view where) {
  const std::pair key(&layout, dims);
  Slot& slot = SlotOf(layout, dims);
  const Grids::value_type* const last = slot.load(std::memory_order_acquire);
  if (last != nullptr && last->first == key) return last->second;
  const std::scoped_lock lock(mutex_);
  auto known = grids_.find(key);
  if (known == grids_.end()) {
    RESHARD_ASSIGN_OR_RETURN(ShardGrid grid, MakeGrid(layout, dims, where));
    known = grids_.emplace(key, std::make_shared<const ShardGrid>(std::move(grid))).first;
  }
  slot.store(&*known, std::memory_order_release);
  return known->second;
}

GridCache::Slot& GridCache::SlotOf(const ParameterLayout& layout, size_t dims) {
  const size_t place = reinterpret_cast<uintptr_t>(&layout) / alignof(ParameterLayout) + dims;
  return slots_[place * 0x9e3779b97f4a7c15U >> 56];
}

}  // namespace reshard
