// TargetView: the files that a conversion would write, readable without writing them.
//
// It owns the open sources, and keeps the plans of a few files in memory. A read gathers its bytes
// from the sources. Any number of threads may read at the same time. Movable; a moved-from view can
// only be destroyed.
//
// Implemented in src/convert.
#ifndef RESHARD_TARGET_VIEW_H_
#define RESHARD_TARGET_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/convert.h"
#include "reshard/findings.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

class TargetView {
 public:
  // Opens the sources, plans every file and checks both, as Convert does before it writes. `run`
  // and `checks.checksum` hold for Stream, too, and a request of `stop` ends reads.
  // `checks.refuse_overflow` holds for Stream alone. The view may hold `memory_limit` bytes. It
  // ignores `target.folder` (which may be empty), `io.target`, `force`, `prune`, `resume`, `shard`,
  // `note` and `record_timeline`.
  //
  // With `keep_pages`, pages of sources stay in the page cache and do not count as memory of the
  // view. So a source byte that several files share is read from the disk once.
  //
  // Errors: as Plan, without the errors of a target folder; kInvalidArgument for encrypted targets:
  // their random vectors differ from call to call.
  static Result<TargetView> Open(const ConvertOptions& options, bool keep_pages = false);

  TargetView(TargetView&& other) noexcept;
  TargetView& operator=(TargetView&& other) noexcept;
  ~TargetView();

  // The results of opening.
  const Findings& findings() const;

  // The files, of ranks by rank. Sizes are exact.
  std::span<const PlanReport::TargetFile> files() const;

  // Fills `out` with the bytes of file number `file` from `offset` on. If a file states its CRC-32,
  // the first read of that number reads the whole file.
  // Errors:
  //   kInvalidArgument: bytes beyond the end of the file
  //   kChanged, kCorrupt, kIo: from the sources
  //   kCancelled
  Status Read(size_t file, uint64_t offset, std::span<std::byte> out) const;

  // Starts to read the source bytes of this range, without waiting. Errors: as Read.
  Status Prefetch(size_t file, ByteRange range) const;

  // Calls `take` in the calling thread with the bytes `range` of file number `file`, in order, a
  // few MiB at a time. Meanwhile RunOptions::jobs threads gather the next bytes. At the end the
  // sources must still be the files that were opened. A whole file is proved by the digests of both
  // sides, as in Convert, unless `checksum` is false. `take` gets bytes before the proof: its
  // results count only if this call returns ok. Returns warnings about values that casts lost.
  // Errors: as `take`, Read and VerifyUnchanged; kMismatch, with `refuse_overflow`, at the first
  // value that a cast lost; kInternal.
  Result<std::vector<Warning>> Stream(
      size_t file, ByteRange range,
      const std::function<Status(std::span<const std::byte>)>& take) const;

  // Whether threads of its own may be reading ahead, as ShardedCheckpoint::HasThreads.
  bool HasThreads() const;

  // Returns ok if the sources are still the files that were opened. Bytes of earlier reads are
  // valid only then. Errors: kChanged, naming a file; kIo.
  Status VerifyUnchanged() const;
  // As above, of the sources of file number `file`.
  Status VerifyUnchanged(size_t file) const;

 private:
  class Impl;
  explicit TargetView(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_TARGET_VIEW_H_
