// LogicalMap: where the bytes of a shard belong in the full tensor.
//
// A plain value, immutable; any thread.
#ifndef RESHARD_SRC_TENSOR_LOGICAL_MAP_H_
#define RESHARD_SRC_TENSOR_LOGICAL_MAP_H_

#include <cstdint>

#include "reshard/box.h"
#include "src/tensor/block_copy.h"

namespace reshard {

class LogicalMap {
 public:
  // `shard` is a box, not empty, of a tensor of `full_bytes` (ToByteShape), and where it lies.
  LogicalMap(const PlacedBox& shard, const Shape& full_bytes);

  struct Place {
    uint64_t position = 0;    // the byte's offset in the full tensor's row-major bytes
    uint64_t contiguous = 0;  // how many bytes from there on are contiguous on both sides
  };
  // Returns the place of the byte at `offset` of the file, one of the shard's. Allocates nothing,
  // so it may be called under the fault guard.
  Place At(uint64_t offset) const;

  struct Row {
    uint64_t count = 1;            // how many of the offsets
    uint64_t position_stride = 0;  // lie this far apart in the full tensor
  };
  // Looks at the bytes at `offset`, `offset` + `stride`, .., `count` of them, all the shard's:
  // returns the first of them that are equally far apart on both sides, at least one. Allocates
  // nothing.
  Row RowAt(uint64_t offset, uint64_t stride, uint64_t count) const;

  // The bytes that are contiguous on both sides, from the beginning of such a run.
  uint64_t run_length() const { return to_logical_.run_length; }

 private:
  BlockCopy to_logical_;  // of the whole shard; its target is the full tensor
};

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_LOGICAL_MAP_H_
