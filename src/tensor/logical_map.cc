#include "src/tensor/logical_map.h"

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

}  // namespace reshard
