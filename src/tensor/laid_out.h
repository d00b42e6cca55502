// Ranges of a file as copies: laid out one after the other.
//
// Pure; any thread.
#ifndef RESHARD_SRC_TENSOR_LAID_OUT_H_
#define RESHARD_SRC_TENSOR_LAID_OUT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "reshard/byte_range.h"
#include "src/tensor/block_copy.h"

namespace reshard {

// Returns the copies that lay `ranges` of file number `source` out from target offset 0 on.
inline std::vector<BlockCopy> LayOut(uint32_t source, std::span<const ByteRange> ranges) {
  std::vector<BlockCopy> copies;
  uint64_t target = 0;
  for (const ByteRange& range : ranges) {
    if (range.length == 0) continue;
    copies.push_back({source, range.offset, target, range.length, {}});
    target += range.length;
  }
  return copies;
}

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_LAID_OUT_H_
