#include "src/tensor/logical_map.h"

#include <algorithm>

namespace reshard {

LogicalMap::LogicalMap(const PlacedBox& shard, const Shape& full_bytes)
    : to_logical_(MakeBlockCopy(shard.box, shard, {Box::Whole(full_bytes), 0})) {}

LogicalMap::Place LogicalMap::At(uint64_t offset) const {
  uint64_t rest = offset - to_logical_.source_offset;
  uint64_t position = to_logical_.target_offset;
  for (const CopyDim& dim : to_logical_.dims) {
    position += rest / dim.source_stride * dim.target_stride;
    rest %= dim.source_stride;
  }
  return {position + rest, to_logical_.run_length - rest};
}

LogicalMap::Row LogicalMap::RowAt(uint64_t offset, uint64_t stride, uint64_t count) const {
  if (to_logical_.dims.empty()) return {count, stride};
  const CopyDim& inner = to_logical_.dims.back();
  if (stride == 0 || stride % inner.source_stride != 0) return {};
  const uint64_t steps = stride / inner.source_stride;
  const uint64_t index = (offset - to_logical_.source_offset) / inner.source_stride % inner.count;
  return {std::min(count, (inner.count - 1 - index) / steps + 1), steps * inner.target_stride};
}

}  // namespace reshard
