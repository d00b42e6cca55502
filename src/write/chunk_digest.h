// ChunkDigest: what one chunk of a target file adds to the file's logical digests.
//
// Computed by the thread that fills the chunk, from both sides: in the source, at the positions
// that follow from the source's shard, and in the chunk, at those that follow from the target box.
// Parts add up in any order, so that any number of chunks are computed at the same time and added
// to their TargetDigest after.
//
// One thread at a time; used for one chunk after another, of any files.
#ifndef RESHARD_SRC_WRITE_CHUNK_DIGEST_H_
#define RESHARD_SRC_WRITE_CHUNK_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reshard/byte_range.h"
#include "src/digest/digest128.h"
#include "src/digest/logical_digest.h"
#include "src/plan/target_plan.h"
#include "src/tensor/logical_map.h"

namespace reshard {

// Where the runs of one copy are added up while they are gathered.
class CopyDigest {
 public:
  CopyDigest(LogicalMap map, LogicalHasher& hasher, Digest128& sum)
      : map_(std::move(map)), hasher_(hasher), sum_(sum) {}

  // Adds `size` bytes of the source file from `offset` on. May be called under the fault guard.
  void Add(const std::byte* bytes, uint64_t size, uint64_t offset);
  // Adds `count` runs of `length` bytes, each `stride` behind the one before, in memory as in the
  // file. May be called under the fault guard.
  void AddRow(const std::byte* bytes, uint64_t length, uint64_t count, uint64_t stride,
              uint64_t offset);

 private:
  const LogicalMap map_;
  LogicalHasher& hasher_;
  Digest128& sum_;
};

class ChunkDigest {
 public:
  // Forgets the chunk before and begins one of these bytes of `plan`, which stays until the chunk
  // was added to its TargetDigest.
  void Begin(const TargetPlan& plan, ByteRange range);

  // Source side: the digest of copy number `copy` of segment number `segment`, a content that has
  // bytes in the chunk.
  CopyDigest OfCopy(size_t segment, size_t copy);

  // Target side: adds `bytes` of the chunk from target offset `offset` on. Literals are compared
  // with the plan's.
  void AddTarget(uint64_t offset, std::span<const std::byte> bytes);

 private:
  friend class TargetDigest;

  LogicalHasher hasher_;
  const TargetPlan* plan_ = nullptr;
  size_t first_segment_ = 0;         // that has bytes in the chunk
  std::vector<size_t> first_copy_;   // in copies_, by segment from first_segment_ on
  std::vector<Digest128> copies_;    // source side
  std::vector<Digest128> contents_;  // target side, by segment from first_segment_ on
  std::optional<uint64_t> changed_literal_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_CHUNK_DIGEST_H_
