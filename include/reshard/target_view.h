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
#include <memory>
#include <span>

#include "reshard/byte_range.h"
#include "reshard/convert.h"
#include "reshard/findings.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

struct ViewOptions {
  // kAll counts as kSample; `checksum` and `refuse_overflow` have no effect
  CheckChoice checks = {};
  RunOptions run = {};  // of Open; a request of `stop` ends reads, too
  // Bytes that the view may hold, as ConvertOptions::memory_limit.
  uint64_t memory_limit = 0;
  SourceIo io = SourceIo::kAuto;
};

class TargetView {
 public:
  // Opens the sources and plans every file, as Convert does. `spec.target.folder` may be empty and
  // is ignored. Errors: as Plan, except for errors about the target folder; kInvalidArgument for
  // encrypted targets, because a view cannot produce their bytes.
  static Result<TargetView> Open(const ConversionSpec& spec, const ViewOptions& options = {});

  TargetView(TargetView&& other) noexcept;
  TargetView& operator=(TargetView&& other) noexcept;
  ~TargetView();

  // The results of opening.
  const Findings& findings() const;

  // The files, of ranks by rank. Sizes are exact.
  std::span<const TargetFileSummary> files() const;

  // Fills `out` with the bytes of file number `file` from `offset` on. If a file states its CRC-32,
  // the first read of that number reads the whole file.
  // Errors:
  //   kInvalidArgument: bytes beyond the end of the file
  //   kChanged, kCorrupt, kIo: from the sources
  //   kCancelled
  Status Read(size_t file, uint64_t offset, std::span<std::byte> out) const;

  // Starts to read the source bytes of this range, without waiting. Errors: as Read.
  Status Prefetch(size_t file, ByteRange range) const;

  // Returns ok if the sources are still the files that were opened. Bytes of earlier reads are
  // valid only then. Errors: kChanged, naming a file; kIo.
  Status VerifyUnchanged() const;

 private:
  class Impl;
  explicit TargetView(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_TARGET_VIEW_H_
