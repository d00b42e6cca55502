#include "src/source/shard_grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

std::string ToText(const std::vector<std::vector<int64_t>>& tensor_map) {
  if (tensor_map.size() == 1) return FirstNumbers(tensor_map[0]);
  std::vector<std::string> dims;
  dims.reserve(tensor_map.size());
  for (const std::vector<int64_t>& axes : tensor_map) dims.push_back(FirstNumbers(axes));
  return '[' + FirstOf(dims) + ']';
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

}  // namespace

Result<ShardGrid> ShardGrid::Make(const ParameterLayout& layout, size_t dims,
                                  std::string_view where) {
  RESHARD_ASSIGN_OR_RETURN(const auto axes_of_dims, AxesOfDims(layout, dims, where));

  ShardGrid grid;
  grid.cuts_.assign(dims, 1);
  const auto& matrix = layout.device_matrix;
  std::vector<Digit> axes(matrix.size());  // as they stand in the device matrix
  for (size_t i = matrix.size(); i-- > 0;) {
    axes[i] = {matrix[i], grid.devices_, kFree};
    const auto devices = CheckedMul(grid.devices_, matrix[i]);
    if (matrix[i] < 1 || !devices) {
      return LayoutError(where, fmt::format("the device matrix {} is not one of devices", matrix));
    }
    grid.devices_ = *devices;
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
      if (axis.dim != kFree) {
        return LayoutError(where, fmt::format("the tensor map uses device axis {} twice", entry));
      }
      axis.dim = static_cast<int>(d);
      grid.cuts_[d] *= axis.size;
      grid.digits_.push_back(axis);
    }
  }

  RESHARD_RETURN_IF_ERROR(grid.PlaceOptimizerShards(layout, axes, where));
  for (const Digit& axis : axes) {
    if (axis.dim == kFree && axis.size > 1) grid.digits_.push_back(axis);
  }
  std::vector<int64_t> weights(dims, 1);
  for (size_t i = grid.digits_.size(); i-- > 0;) {
    Digit& digit = grid.digits_[i];
    if (digit.dim == kFree) continue;
    digit.weight = weights[static_cast<size_t>(digit.dim)];
    weights[static_cast<size_t>(digit.dim)] *= digit.size;
  }
  return grid;
}

Status ShardGrid::PlaceOptimizerShards(const ParameterLayout& layout, std::vector<Digit>& axes,
                                       std::string_view where) {
  const int64_t step = layout.opt_weight_shard_step;
  const int64_t size = layout.opt_weight_shard_size;
  if (step == 0 || size == 0) return {};
  const auto error = [&](std::string_view why) {
    return LayoutError(where, fmt::format("optimizer sharding (opt_weight_shard_size {}, "
                                          "opt_weight_shard_step {}) cannot be placed on the "
                                          "device matrix {}: {}",
                                          size, step, layout.device_matrix, why));
  };
  if (size < -1 || step < 0) return error("neither may be negative, but for size -1");
  if (cuts_.empty()) return error("a scalar has no first dimension");

  std::vector<Digit> free;
  int64_t replicas = 1;
  for (const Digit& axis : axes) {
    if (axis.dim != kFree || axis.size == 1) continue;
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

  // From the right, whole axes and at last the inner part of one.
  std::vector<Digit> taken;
  std::vector<Digit> rest = axes;
  int64_t left = parts;
  for (size_t i = rest.size(); i-- > 0 && left > 1;) {
    Digit& axis = rest[i];
    if (axis.dim != kFree) continue;
    const int64_t inner = std::gcd(left, axis.size);
    if (inner != left && inner != axis.size) {
      if (replicas != devices_) return error(fmt::format("{} does not fit the axes", parts));
      modulus_ = parts;  // fully replicated: the rank itself is counted, and no axis is taken
      cuts_[0] *= parts;
      return {};
    }
    taken.push_back({inner, axis.stride, 0});
    axis = {axis.size / inner, axis.stride * inner, kFree};
    left /= inner;
  }
  cuts_[0] *= parts;
  digits_.insert(digits_.end(), taken.rbegin(), taken.rend());
  axes = std::move(rest);
  return {};
}

ShardGrid ShardGrid::Whole(size_t dims) {
  ShardGrid grid;
  grid.cuts_.assign(dims, 1);
  return grid;
}

Result<Shape> ShardGrid::FullShape(const Shape& shard, std::string_view where) const {
  Shape full;
  full.reserve(shard.size());
  for (size_t d = 0; d < shard.size(); ++d) {
    const auto size = CheckedMul(shard[d], cuts_[d]);
    if (!size) {
      return LayoutError(where, fmt::format("dimension {} of {} elements a shard times {} parts "
                                            "is too large",
                                            d, shard[d], cuts_[d]));
    }
    full.push_back(*size);
  }
  return full;
}

Result<Shape> ShardGrid::ShardShape(const Shape& full, std::string_view where) const {
  Shape shard;
  shard.reserve(full.size());
  for (size_t d = 0; d < full.size(); ++d) {
    if (full[d] % cuts_[d] != 0) {
      return LayoutError(where, fmt::format("dimension {} of the full shape {} has {} elements, "
                                            "which cannot be cut into {} equal parts",
                                            d, ToString(full), full[d], cuts_[d]));
    }
    shard.push_back(full[d] / cuts_[d]);
  }
  return shard;
}

std::vector<int64_t> ShardGrid::PartsOf(int64_t rank) const {
  std::vector<int64_t> parts(cuts_.size(), 0);
  for (const Digit& digit : digits_) {
    if (digit.dim == kFree) continue;
    int64_t& part = parts[static_cast<size_t>(digit.dim)];
    part = part * digit.size + rank / digit.stride % digit.size;
  }
  if (modulus_ != 0) parts[0] = rank % modulus_;
  return parts;
}

Box ShardGrid::BoxOfParts(const std::vector<int64_t>& parts, const Shape& shard) {
  Box box{{}, shard};
  box.begin.reserve(parts.size());
  for (size_t d = 0; d < parts.size(); ++d) box.begin.push_back(parts[d] * shard[d]);
  return box;
}

int64_t ShardGrid::RankOf(const std::vector<int64_t>& parts, int64_t preferred) const {
  if (modulus_ != 0) {
    const auto shared = [&](int64_t rank) {
      return std::count_if(digits_.begin(), digits_.end(), [&](const Digit& digit) {
        return rank / digit.stride % digit.size == preferred / digit.stride % digit.size;
      });
    };
    int64_t best = parts[0];
    for (int64_t rank = best; rank < devices_; rank += modulus_) {
      if (shared(rank) > shared(best)) best = rank;
    }
    return best;
  }
  // The free digits are the preferred rank's, the others follow from the parts.
  int64_t rank = 0;
  for (const Digit& digit : digits_) {
    const int64_t value = digit.dim == kFree ? preferred / digit.stride
                                             : parts[static_cast<size_t>(digit.dim)] / digit.weight;
    rank += value % digit.size * digit.stride;
  }
  return rank;
}

int64_t ShardGrid::parts() const {
  int64_t parts = 1;
  for (const int64_t cut : cuts_) parts *= cut;
  return parts;
}

int64_t ShardGrid::replicas() const { return devices_ / parts(); }

std::vector<int64_t> ShardGrid::Replicas(const std::vector<int64_t>& parts) const {
  std::vector<int64_t> ranks;
  if (modulus_ != 0) {
    for (int64_t rank = parts[0]; rank < devices_; rank += modulus_) ranks.push_back(rank);
    return ranks;
  }
  ranks.push_back(RankOf(parts, 0));
  for (const Digit& digit : digits_) {
    if (digit.dim != kFree) continue;
    const size_t count = ranks.size();
    for (int64_t value = 1; value < digit.size; ++value) {
      for (size_t i = 0; i < count; ++i) ranks.push_back(ranks[i] + value * digit.stride);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void ShardGrid::ForEachOverlap(
    const Box& box, const Shape& shard,
    const std::function<bool(const std::vector<int64_t>& parts)>& visit) const {
  if (box.empty() || Box::Whole(shard).empty()) return;
  std::vector<int64_t> first(box.dims());
  std::vector<int64_t> last(box.dims());
  for (size_t d = 0; d < box.dims(); ++d) {
    first[d] = box.begin[d] / shard[d];
    last[d] = (box.begin[d] + box.extent[d] - 1) / shard[d];
  }
  std::vector<int64_t> parts = first;
  while (visit(parts)) {
    size_t d = parts.size();
    while (d > 0 && parts[d - 1] == last[d - 1]) {
      --d;
      parts[d] = first[d];
    }
    if (d == 0) return;
    ++parts[d - 1];
  }
}

}  // namespace reshard
