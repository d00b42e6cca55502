#include "format/mindformers_metadata/slice_layout.h"

#include <fmt/format.h>

#include <cstddef>

#include "src/base/checked.h"
#include "src/base/quote.h"

namespace reshard {
namespace {

// Returns the place in the matrix of each axis that cuts a dimension. Errors: as SlicesOf.
Result<std::vector<std::vector<size_t>>> AxesOfSlices(const SliceLayout& layout) {
  std::vector<bool> used(layout.device_matrix.size(), false);
  std::vector<std::vector<size_t>> axes;
  for (const std::vector<int64_t>& cuts : layout.tensor_map) {
    std::vector<size_t>& of_dimension = axes.emplace_back();
    for (const int64_t cut : cuts) {
      if (cut < 0 || static_cast<uint64_t>(cut) >= used.size()) {
        return CorruptError(
            fmt::format("tensor_map has {}, but device_matrix has {} axes", cut, used.size()));
      }
      const size_t axis = used.size() - 1 - static_cast<size_t>(cut);
      if (used[axis]) return CorruptError(fmt::format("tensor_map has axis {} twice", cut));
      used[axis] = true;
      of_dimension.push_back(axis);
    }
  }
  return axes;
}

}  // namespace

Result<SlicesOfRanks> SlicesOf(const SliceLayout& layout) {
  const std::vector<int64_t>& matrix = layout.device_matrix;
  int64_t devices = 1;
  for (const int64_t size : matrix) {
    const auto product = size < 1 ? std::nullopt : CheckedMul(devices, size);
    if (!product) {
      return CorruptError(fmt::format("device_matrix is {}", FirstNumbers(matrix)));
    }
    devices = *product;
  }
  if (static_cast<uint64_t>(devices) != layout.ranks.size()) {
    return CorruptError(fmt::format("rank_list has {} ranks, but device_matrix {} has {}",
                                    layout.ranks.size(), FirstNumbers(matrix), devices));
  }
  auto axes = AxesOfSlices(layout);
  if (!axes.ok()) return axes.status();
  SlicesOfRanks slices;
  for (const std::vector<size_t>& of_dimension : *axes) {
    int64_t& cuts = slices.fragments.emplace_back(1);
    for (const size_t axis : of_dimension) cuts *= matrix[axis];  // a divisor of `devices`
  }
  std::vector<int64_t> place(matrix.size(), 0);
  for (const int64_t rank : layout.ranks) {
    int64_t slice = 0;
    for (size_t d = 0; d < axes->size(); ++d) {
      int64_t index = 0;
      for (const size_t axis : (*axes)[d]) index = index * matrix[axis] + place[axis];
      slice = slice * slices.fragments[d] + index;
    }
    if (!slices.slice.emplace(rank, slice).second) {
      return CorruptError(fmt::format("rank_list has rank {} twice", rank));
    }
    for (size_t axis = matrix.size(); axis-- > 0;) {
      if (++place[axis] < matrix[axis]) break;
      place[axis] = 0;
    }
  }
  return slices;
}

}  // namespace reshard
