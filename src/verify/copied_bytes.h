// The bytes that block copies move: visits them in the order of their source, and collects,
// compares or digests them.
//
// Knows block copies only, not layouts. It shares no code with the writing side, because it checks
// that side's output. All state is in the caller's arguments; any number of threads may call.
#ifndef RESHARD_SRC_VERIFY_COPIED_BYTES_H_
#define RESHARD_SRC_VERIFY_COPIED_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/status_macros.h"
#include "src/digest/logical_digest.h"
#include "src/io/source_files.h"
#include "src/tensor/block_copy.h"

namespace reshard {

// A piece of a parameter is planned by the thread that reads it, so that few plans are in memory at
// a time.
inline constexpr uint64_t kPieceBytes = uint64_t{256} << 20;
// Bytes that are read at a time. To compare: whole elements of every dtype that fit a core's cache.
// To digest: few enough that a request to stop takes effect soon.
inline constexpr uint64_t kComparisonStepBytes = uint64_t{1} << 20;
inline constexpr uint64_t kDigestStepBytes = uint64_t{32} << 20;

// Equally long runs at equal distances.
struct CopyRow {
  const std::byte* bytes = nullptr;  // of the first run
  uint64_t source = 0;               // its offset in the source file
  uint64_t target = 0;               // its offset in the target
  uint64_t length = 0;               // of each run
  uint64_t count = 1;
  uint64_t source_stride = 0;  // from a run to the next: in the file and in memory
  uint64_t target_stride = 0;
};

// The bytes that a block copy moves, in the order of its source.
//
// Comparisons and digests read them in place, in windows of the source file, and learn the place of
// each byte in the target. Bytes are not gathered. Immutable, so any number of threads may read it.
class CopyRows {
 public:
  explicit CopyRows(const BlockCopy& copy);

  const BlockCopy& copy() const { return copy_; }

  // Returns the range of the source file from the first to the last byte that the copy moves to
  // `target`. It includes gaps, but no byte that the copy moves elsewhere.
  ByteRange SourceOf(ByteRange target) const;

  // Calls visit(const CopyRow&) for the runs with bytes in `source`, a range of the source file,
  // cut to it, in ascending order. Close runs share a window. A run across the end of a window
  // comes in two parts. `visit` is called under the fault guard: it must not make objects with
  // destructors, take locks or allocate. Errors: as SourceFiles::Open and Window::Read.
  template <typename Visit>
  Status ForEach(SourceFiles& files, ByteRange source, Visit visit) const;

  // Calls visit(ByteRange) for the parts of `source` that ForEach reads, in ascending order.
  template <typename Visit>
  void ForEachBlock(ByteRange source, Visit visit) const {
    for (RunCursor block(blocks_, source); !block.done(); block.Next()) {
      visit(ByteRange{block.run().target_offset, block.run().length});
    }
  }

  // As ForEach for bytes in memory: `data` has the file's bytes from `window.offset` on. May be
  // called under the fault guard.
  template <typename Visit>
  void ForEachInWindow(ByteRange window, const std::byte* data, const Visit& visit) const;

 private:
  // The source offset of the first byte that is moved to `target` or behind it.
  uint64_t SourceFrom(uint64_t target) const;

  BlockCopy copy_;
  CopyDim inner_;  // its innermost loop
  // In these two, source and target have changed places, so that a RunCursor takes them in the
  // source's order, by source offsets. Their "runs" have gaps:
  BlockCopy loops_;   // a whole innermost loop each
  BlockCopy blocks_;  // as many loops as have no gap that is worth another window
};

template <typename Visit>
Status CopyRows::ForEach(SourceFiles& files, ByteRange source, Visit visit) const {
  for (RunCursor block(blocks_, source); !block.done(); block.Next()) {
    uint64_t begin = block.run().target_offset;
    const uint64_t end = begin + block.run().length;
    while (begin < end) {
      const ByteRange range{begin, std::min(kWindowBytes - begin % kWindowBytes, end - begin)};
      RESHARD_ASSIGN_OR_RETURN(const Window window,
                               files.Open(copy_.source, range.offset, range.length));
      RESHARD_RETURN_IF_ERROR(window.Read(
          [this, range, &visit](const std::byte* data) { ForEachInWindow(range, data, visit); }));
      begin = range.end();
    }
  }
  return {};
}

template <typename Visit>
void CopyRows::ForEachInWindow(ByteRange window, const std::byte* data, const Visit& visit) const {
  const uint64_t stride = inner_.source_stride;
  const uint64_t run_length = copy_.run_length;
  // Beginning so much earlier that the first loop that reaches into the window is not cut.
  const uint64_t earlier = std::min(window.offset, loops_.run_length - 1);
  const ByteRange reach{window.offset - earlier, window.length + earlier};
  for (RunCursor loop(loops_, reach); !loop.done(); loop.Next()) {
    const uint64_t first = loop.run().target_offset;           // in the source file
    if (first + loop.run().length <= window.offset) continue;  // it may be cut
    // The runs first + i * stride that have bytes in the window, with i from `next` up to `stop`.
    const uint64_t next =
        first + run_length > window.offset
            ? 0
            : std::min(inner_.count, (window.offset - first - run_length) / stride + 1);
    const uint64_t stop =
        first >= window.end() ? 0 : std::min(inner_.count, (window.end() - 1 - first) / stride + 1);
    // These runs as rows: the first run, perhaps cut; the whole runs; the last run, perhaps cut.
    for (uint64_t i = next; i < stop;) {
      const uint64_t run = first + i * stride;
      const uint64_t begin = std::max(run, window.offset);
      const uint64_t end = std::min(run + run_length, window.end());
      CopyRow row{.bytes = data + (begin - window.offset),
                  .source = begin,
                  .target = loop.run().source_offset + i * inner_.target_stride + (begin - run),
                  .length = end - begin,
                  .count = 1,
                  .source_stride = stride,
                  .target_stride = inner_.target_stride};
      if (row.length == run_length) {
        const bool last_is_cut = first + (stop - 1) * stride + run_length > window.end();
        row.count = stop - i - (last_is_cut ? 1 : 0);
      }
      visit(row);
      i += row.count;
    }
  }
}

// CopyReadAhead: asks for bytes ahead that copies move, those at once that lie close together in a
// file. One thread at a time.
class CopyReadAhead {
 public:
  explicit CopyReadAhead(SourceFiles& files) : files_(files) {}

  // Takes the bytes that `copies`, ordered by their first target byte, move to the range `part` of
  // their target. Errors: as SourceFiles::Prefetch.
  Status Add(std::span<const BlockCopy> copies, ByteRange part);
  // Requests the bytes that were not requested yet. Errors: as Add.
  Status Finish();

 private:
  Status Ask(FileId file, ByteRange range);

  SourceFiles& files_;
  std::map<FileId, ByteRange> pending_;  // that more may follow on
};

// Copies the bytes that `copies` move to target offset `offset` and on. `copies` are disjoint,
// ordered by their first target byte, and move each byte. Errors: as SourceFiles; kInternal if the
// copies leave a gap.
Status CollectBytes(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
                    std::span<std::byte> out);

// The number of differing bytes, and the first one.
struct ByteDifference {
  uint64_t count = 0;
  uint64_t target = 0;  // the first one's offset in the target
  FileId file = 0;      // the source of the first one
  uint64_t source = 0;
  std::byte expected{};
  std::byte found{};

  // Adds what was found in other bytes of the same target.
  void Add(const ByteDifference& other);
};

// Compares `found` with the bytes that `copies` move to target offset `offset` and on, and adds
// differences to `difference`. Errors: as CollectBytes.
Status CompareBytes(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
                    std::span<const std::byte> found, ByteDifference& difference);

// Returns the first of the bytes that `expected` and `found` move to the first `size` of their
// targets that differs, if one does. Errors: as CollectBytes; kCancelled.
Result<std::optional<ByteDifference>> FirstDifference(SourceFiles& files,
                                                      std::span<const BlockCopy> expected,
                                                      std::span<const BlockCopy> found,
                                                      uint64_t size, const std::stop_token& stop);

// Adds the terms of the bytes of `row`, at their places in the target, to `sum`. May be called
// under the fault guard.
void AddRow(const CopyRow& row, LogicalHasher& hasher, Digest128& sum);

// Adds the terms of the bytes that `copies` move to the range `part` of their target to `sum`. The
// copies are as CollectBytes takes them. `hasher` belongs to this thread. Errors: as CollectBytes.
Status AddCopied(SourceFiles& files, const std::vector<BlockCopy>& copies, ByteRange part,
                 LogicalHasher& hasher, Digest128& sum);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_COPIED_BYTES_H_
