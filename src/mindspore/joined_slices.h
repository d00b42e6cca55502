// JoinedSlices: the places of a parameter's slices in the tensor that they are joined to.
//
// Arithmetic on shapes; pure functions.
#ifndef RESHARD_SRC_MINDSPORE_JOINED_SLICES_H_
#define RESHARD_SRC_MINDSPORE_JOINED_SLICES_H_

#include <span>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"

namespace reshard {

struct JoinedSlices {
  Shape full;              // that the boxes lie in
  Shape dims;              // of the tensor: the same elements in the same order
  std::vector<Box> boxes;  // of each slice; equal boxes are replicas
};

// In both functions, `shapes` are the shapes of the slices, at least one, in the order of the
// ranks. All have the same number of dimensions, at least one. `where` begins the messages. Errors:
// kMismatch, with the number of the slice, counted from 0.

// Concatenated along axis 0.
Result<JoinedSlices> JoinRows(std::span<const Shape> shapes, std::string_view where);

// Joined as `layout` says, for as many devices as there are slices (merge_target.h).
Result<JoinedSlices> JoinByLayout(std::span<const Shape> shapes, const ParameterLayout& layout,
                                  std::string_view where);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_JOINED_SLICES_H_
