// BlockCopy: the byte runs in the overlap of a source box and a target box, as geometry.
//
// Runs are enumerated lazily and never stored. All numbers are bytes. Plain values; no locking.
#ifndef RESHARD_SRC_TENSOR_BLOCK_COPY_H_
#define RESHARD_SRC_TENSOR_BLOCK_COPY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/tensor.h"

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

// A box of a row-major tensor whose bytes lie contiguously in a file: its first byte is at
// `offset`.
struct PlacedBox {
  Box box;  // in the coordinates of the full tensor, last dimension in bytes (see ByteBox)
  int64_t offset = 0;
};

// A view of such a box.
struct PlacedBoxView {
  std::span<const int64_t> begin;
  std::span<const int64_t> extent;
  int64_t offset = 0;
};

// Returns the copy of `overlap` from `source` to `target`, boxes that both contain it. Adjacent
// loops whose bytes are contiguous on both sides are joined, so the run is as long as possible.
BlockCopy MakeBlockCopy(const Box& overlap, const PlacedBox& source, const PlacedBox& target);

// Returns the copy of all of `shard` to its place in the tensor's row-major bytes. `shard` is a
// nonempty box of a tensor of shape `full_bytes` (ToByteShape).
BlockCopy MakeBlockCopy(const PlacedBoxView& shard, std::span<const int64_t> full_bytes);

// A run, cut to the part that was asked for.
struct Run {
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t length = 0;
};

// Visits the runs of a copy whose target bytes lie in a range, in order. Takes no memory on the
// heap and needs no destructor, so it may be used under the fault guard. The copy must outlive it.
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

// Maps the bytes of a shard to their places in the full tensor. A plain value, immutable; any
// thread.
class LogicalMap {
 public:
  // As MakeBlockCopy.
  LogicalMap(const PlacedBoxView& shard, std::span<const int64_t> full_bytes)
      : to_logical_(MakeBlockCopy(shard, full_bytes)) {}

  struct Place {
    uint64_t position = 0;    // the byte's offset in the full tensor's row-major bytes
    uint64_t contiguous = 0;  // how many bytes from there on are contiguous on both sides
  };
  // Returns the place of the byte at `offset` of the file. The byte belongs to the shard. Does not
  // allocate, so it may be called under the fault guard.
  Place At(uint64_t offset) const;

  struct Row {
    uint64_t count = 1;            // how many of the offsets
    uint64_t position_stride = 0;  // lie this far apart in the full tensor
  };
  // Examines the bytes at `offset`, `offset` + `stride`, .., `count` bytes, all in the shard.
  // Returns the longest prefix, at least one byte, with equal distances on both sides. Does not
  // allocate.
  Row RowAt(uint64_t offset, uint64_t stride, uint64_t count) const;

  // The bytes that are contiguous on both sides, from the beginning of such a run.
  uint64_t run_length() const { return to_logical_.run_length; }

 private:
  BlockCopy to_logical_;  // of the whole shard; its target is the full tensor
};

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

#endif  // RESHARD_SRC_TENSOR_BLOCK_COPY_H_
