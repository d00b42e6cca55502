// TargetDigest: what is proved of one target file, or of a part of it, while it is written.
//
// The bytes of each content are seen twice, by ChunkDigest. When both logical digests agree, every
// byte went where it belongs. The file and its blocks get their own digests on the way.
//
// Used by one thread at a time, chunk after chunk in the order of the file. The plan must outlive
// it.
#ifndef RESHARD_SRC_WRITE_TARGET_DIGEST_H_
#define RESHARD_SRC_WRITE_TARGET_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/digest/digest128.h"
#include "src/digest/xxh3.h"
#include "src/plan/target_plan.h"
#include "src/write/chunk_digest.h"

namespace reshard {

class TargetDigest {
 public:
  // Of the bytes `range`, which begin at a block's beginning and end at one or at the file's end.
  TargetDigest(const TargetPlan& plan, ByteRange range);
  explicit TargetDigest(const TargetPlan& plan) : TargetDigest(plan, {0, plan.size}) {}

  // Adds the next bytes, and their logical digests.
  void AddChunk(std::span<const std::byte> chunk, const ChunkDigest& sums);

  // Compares both sides, and the literals with the plan's, once all bytes of the range were added.
  // Errors: kInternal, naming the file and the parameter, when they differ.
  Status Compare() const;

  // What follows is complete once all bytes were added, and speaks of the range.
  // XXH3-128 of the file; only where the range is all of it.
  std::string file() const { return file_.HexDigest(); }
  // XXH3-128 of each block of the range.
  const std::vector<std::string>& blocks() const { return blocks_; }
  // The logical digest of what a content holds of its parameter. A content without bytes in the
  // range has none of it.
  const Digest128& content(size_t segment) const { return contents_[segment]; }
  // The logical digest of what a copy took.
  const Digest128& copy(size_t segment, size_t copy) const {
    return copies_[first_copy_[segment] + copy];
  }

 private:
  void AddSums(const ChunkDigest& sums);
  void AddPiece(std::span<const std::byte> piece);

  const TargetPlan& plan_;
  const ByteRange range_;
  std::vector<size_t> first_copy_;   // in copies_, by segment
  std::vector<Digest128> copies_;    // source side
  std::vector<Digest128> contents_;  // target side, by segment
  Xxh3 file_;
  Xxh3 block_;
  std::vector<std::string> blocks_;
  uint64_t next_;  // offset of the next byte to be added
  std::optional<uint64_t> changed_literal_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_TARGET_DIGEST_H_
