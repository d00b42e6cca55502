// The copies that put a box of a tensor together from the pieces that hold it.
#ifndef RESHARD_SRC_PLAN_MAKE_COPIES_H_
#define RESHARD_SRC_PLAN_MAKE_COPIES_H_

#include <cstdint>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/source/placement.h"
#include "src/source/source.h"
#include "src/tensor/block_copy.h"

namespace reshard {

// Copies, and for each the shard that it reads from, placed in its file.
struct ShardCopies {
  std::vector<BlockCopy> copies;
  std::vector<PlacedBox> shards;
};

// Returns the copies that gather `box` (in elements) of `tensor` from `shards`: its row-major bytes
// `part` (of the box) go to `target_offset` and on. Proved to write each byte once; ordered by
// target offset. Errors: kMismatch when the shards do not cover the box.
Result<ShardCopies> MakeCopies(const SourceTensor& tensor, const std::vector<PlacedPiece>& shards,
                               const Box& box, ByteRange part, uint64_t target_offset);

// Returns the copies that gather the row-major bytes of `box`, in elements, to offset 0 and on,
// ordered by their first target byte. For a text or a MapTensor, returns copies of all bytes, for
// any box. It is proved that each byte is written once. Errors: as Source::Cover.
Result<std::vector<BlockCopy>> CopiesOf(const Source& source, const SourceTensor& tensor,
                                        const Box& box);

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_MAKE_COPIES_H_
