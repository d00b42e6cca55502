// ParameterLayout: how a strategy says that one parameter is cut over the ranks of a stage.
//
// The statement as it stands in a strategy file (src/mindspore/SPEC.md); ShardGrid
// gives it its meaning. A plain value; no locking.
#ifndef RESHARD_SRC_MINDSPORE_PARAMETER_LAYOUT_H_
#define RESHARD_SRC_MINDSPORE_PARAMETER_LAYOUT_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "reshard/tensor.h"

namespace reshard {

struct ParameterLayout {
  std::vector<int64_t> device_matrix;  // device axes, slowest first
  // The device axes that split a tensor dimension, counted from the right; -1: not split. One inner
  // vector: an entry for each tensor dimension (or, where the count differs from the tensor's dims,
  // all entries for the one dimension there is). Several inner vectors: one for each tensor
  // dimension, its axes slowest first.
  std::vector<std::vector<int64_t>> tensor_map;
  int64_t opt_weight_shard_step = 0;
  int64_t opt_weight_shard_size =
      0;              // parts of the first dimension beyond tensor_map; -1: all replicas
  int64_t field = 0;  // only merge_sliced_parameter gives
  std::vector<std::vector<int64_t>> param_split_shape;  // these three a meaning
  std::vector<std::vector<int64_t>> indices_offset;
  std::optional<Shape> tensor_shape;  // the full shape; JSON only

  friend auto operator<=>(const ParameterLayout&, const ParameterLayout&) = default;
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_PARAMETER_LAYOUT_H_
