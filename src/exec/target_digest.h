// TargetDigest: what is proved of one target file while it is written.
//
// The bytes of each content are seen twice: in the source, at the positions that follow from the
// source's shard, and in the target, at those that follow from the target box. When both logical
// digests agree, every byte went where it belongs. The file and its blocks get their own digests on
// the way.
//
// Used by one thread at a time. The plan must outlive it.
#ifndef RESHARD_SRC_EXEC_TARGET_DIGEST_H_
#define RESHARD_SRC_EXEC_TARGET_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/digest/digest128.h"
#include "src/digest/logical_digest.h"
#include "src/digest/xxh3.h"
#include "src/plan/target_plan.h"
#include "src/tensor/block_copy.h"
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

class TargetDigest {
 public:
  explicit TargetDigest(const TargetPlan& plan);

  // Returns the digest of copy number `copy` of segment number `segment`, a content.
  CopyDigest OfCopy(size_t segment, size_t copy);

  // Adds the next bytes of the target file; `chunk` begins where the one before ended.
  void AddChunk(std::span<const std::byte> chunk);

  // Compares both sides, and the literals with the plan's, once all bytes were added.
  // Errors: kInternal, naming the file and the parameter, when they differ.
  Status Compare() const;

  // What follows is complete once all bytes were added.
  std::string file() const { return file_.HexDigest(); }
  const std::vector<std::string>& blocks() const { return blocks_; }
  // The logical digest of what a content holds of its parameter.
  const Digest128& content(size_t segment) const { return contents_[segment]; }
  // The logical digest of what a copy took.
  const Digest128& copy(size_t segment, size_t copy) const {
    return copies_[first_copy_[segment] + copy];
  }

 private:
  void AddPiece(std::span<const std::byte> chunk);
  // Adds a part of segment_ that is at `offset`.
  void AddPart(const Segment& segment, uint64_t offset, std::span<const std::byte> bytes);

  const TargetPlan& plan_;
  LogicalHasher hasher_;
  std::vector<size_t> first_copy_;   // in copies_, by segment
  std::vector<Digest128> copies_;    // source side
  std::vector<Digest128> contents_;  // target side, by segment
  Xxh3 file_;
  Xxh3 block_;
  std::vector<std::string> blocks_;
  uint64_t size_ = 0;   // bytes added
  size_t segment_ = 0;  // that the next byte belongs to
  std::optional<uint64_t> changed_literal_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_TARGET_DIGEST_H_
