// BlockCopy: the byte runs of one overlap of a source box with a target box, as geometry.
//
// Runs are enumerated lazily and never stored. All numbers are bytes. Plain values; no locking.
#ifndef RESHARD_SRC_TENSOR_BLOCK_COPY_H_
#define RESHARD_SRC_TENSOR_BLOCK_COPY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reshard/box.h"
#include "reshard/byte_range.h"

namespace reshard {

// One loop around the run: `count` repetitions, this far apart in the source and in the target.
struct CopyDim {
  uint64_t count = 1;
  uint64_t source_stride = 0;
  uint64_t target_stride = 0;
  friend bool operator==(const CopyDim&, const CopyDim&) = default;
};

// Run (i, j, ..) goes from source_offset + sum(i * source_stride) to target_offset + sum(i *
// target_stride). The loops are ordered outermost first; both offsets grow along that order, and
// runs do not overlap on either side.
struct BlockCopy {
  uint32_t source = 0;  // a FileId
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t run_length = 0;
  std::vector<CopyDim> dims;

  uint64_t runs() const;
  uint64_t bytes() const { return runs() * run_length; }
  // The range from the first byte to the last one, gaps included.
  ByteRange SourceSpan() const;
  ByteRange TargetSpan() const;
  friend bool operator==(const BlockCopy&, const BlockCopy&) = default;
};

// Where the bytes of a box of a row-major tensor lie contiguously: the box's first byte is at
// `offset`.
struct PlacedBox {
  Box box;  // in the coordinates of the full tensor, last dimension in bytes (see ByteBox)
  int64_t offset = 0;
};

// Returns the copy of `overlap` from `source` to `target`, boxes that both contain it. Adjacent
// loops whose bytes are contiguous on both sides are joined, so the run is as long as it can be.
BlockCopy MakeBlockCopy(const Box& overlap, const PlacedBox& source, const PlacedBox& target);

// A run, cut to the part that was asked for.
struct Run {
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t length = 0;
};

// Walks the runs of a copy whose target bytes lie in a range, in order. Holds no memory of its own,
// so it may be used where nothing may be destroyed (under the fault guard). The copy must outlive
// it.
class RunCursor {
 public:
  RunCursor(const BlockCopy& copy, ByteRange target);

  bool done() const { return done_; }
  // The current run; only when not done().
  const Run& run() const { return run_; }
  void Next();

 private:
  void Settle();

  const CopyDim* dims_;
  size_t dim_count_;
  uint64_t run_length_;
  uint64_t source_;  // of the current run, not cut
  uint64_t target_;
  uint64_t begin_;
  uint64_t end_;
  bool done_ = false;
  Run run_;
  std::array<uint64_t, kMaxDims + 1> index_;  // only the first dim_count_ are ever set
};

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_BLOCK_COPY_H_
