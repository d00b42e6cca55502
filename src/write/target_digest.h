// The proof of a target file, or of a part of a file, made while it is written.
//
// The bytes of each content are digested twice. In the source, their positions follow from the
// source's shard. In the chunk, they follow from the target box. If both logical digests agree,
// every byte went to its place. Values that are cast are digested for the second time just before
// the cast, gathered and still in the sources' dtype. The file and its blocks get their own digests
// on the way.
//
// ChunkDigest has the sums of a single chunk. Sums add up in any order, so any number of chunks are
// computed at the same time, and then added to their TargetDigest. One thread at a time uses an
// object.
#ifndef RESHARD_SRC_WRITE_TARGET_DIGEST_H_
#define RESHARD_SRC_WRITE_TARGET_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/digest/crc32.h"
#include "src/digest/digest128.h"
#include "src/digest/logical_digest.h"
#include "src/digest/xxh3.h"
#include "src/io/source_files.h"
#include "src/plan/target_plan.h"
#include "src/tensor/block_copy.h"

namespace reshard {

// Adds up the runs of a copy while they are gathered.
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
  // Forgets the last chunk and begins a chunk with these bytes of `plan`. The plan has to stay
  // until the chunk was added to its TargetDigest.
  void Begin(const TargetPlan& plan, ByteRange range);

  // Source side: the digest of copy number `copy` of segment number `segment`, a content that has
  // bytes in the chunk.
  CopyDigest OfCopy(size_t segment, size_t copy);

  // Of a cast content, the side that is compared with the source's: adds gathered bytes before the
  // cast. `bytes` begin at `offset` of its image.
  void AddImage(size_t segment, uint64_t offset, std::span<const std::byte> bytes);

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
  std::vector<Digest128> images_;    // likewise, if a content is cast
  std::optional<uint64_t> changed_literal_;
};

// Used chunk after chunk in the order of the file. The plan must outlive it.
class TargetDigest {
 public:
  // Of the bytes `range`, which begin at a block's beginning and end at one or at the file's end.
  TargetDigest(const TargetPlan& plan, ByteRange range);
  explicit TargetDigest(const TargetPlan& plan) : TargetDigest(plan, {0, plan.size}) {}

  // Adds the next bytes, and their logical digests. If a whole file ends with its CRC-32, writes
  // the number into these bytes.
  void AddChunk(std::span<std::byte> chunk, const ChunkDigest& sums);

  // Compares both sides, and the literals with the plan's, once all bytes of the range were added.
  // Errors: kInternal, naming the file and the parameter, when they differ.
  Status Compare() const;

  // The values below are complete once all bytes were added. They describe the range. XXH3-128 of
  // the file; only if the range is the whole file.
  std::string file() const { return file_.HexDigest(); }
  // XXH3-128 of each block of the range.
  const std::vector<std::string>& blocks() const { return blocks_; }
  // The logical digest of the parameter's bytes in a content. It has no terms if the content has no
  // bytes in the range.
  const Digest128& content(size_t segment) const { return contents_[segment]; }
  // The logical digest of the bytes that a copy took.
  const Digest128& copy(size_t segment, size_t copy) const {
    return copies_[first_copy_[segment] + copy];
  }

 private:
  void AddSums(const ChunkDigest& sums);
  void AddPiece(std::span<const std::byte> piece);
  // Adds to the CRC, and writes it to its place.
  void StateCrc(std::span<std::byte> piece);

  const TargetPlan& plan_;
  const ByteRange range_;
  std::vector<size_t> first_copy_;   // in copies_, by segment
  std::vector<Digest128> copies_;    // source side
  std::vector<Digest128> contents_;  // target side, by segment
  // the digests of cast contents, by segment; empty if the plan has no casts
  std::vector<Digest128> images_;
  Xxh3 file_;
  Xxh3 block_;
  std::vector<std::string> blocks_;
  uint64_t next_;  // offset of the next byte to be added
  Crc32 crc_;
  std::optional<uint64_t> changed_literal_;
};

// Compares the source's side with the written side. If another program wrote to a source, it may
// have been read twice with different bytes. The error says so in that case. Errors: as
// TargetDigest::Compare; kChanged.
Status Prove(const TargetDigest& digest, const SourceFiles& sources);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_TARGET_DIGEST_H_
