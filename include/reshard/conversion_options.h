// What several calls take among their options: TargetFormat, UnmatchedPolicy, CheckReplicas,
// Resume, WorkerShare, IoChoice.
//
// Plain values.
//
// Implemented in src/base (header only).
#ifndef RESHARD_CONVERSION_OPTIONS_H_
#define RESHARD_CONVERSION_OPTIONS_H_

#include <cstdint>

namespace reshard {
inline namespace v0_1 {

// How target files are written down.
enum class TargetFormat {
  kCkpt,         // rank_N/PREFIXN.ckpt, as MindSpore's save_checkpoint writes
  kSafetensors,  // rank_N/PREFIXN.safetensors, byte for byte as the safetensors library writes
};

// What becomes of parameters that exactly one of two given strategies has, and whether tensors of
// several elements may be in none that is given.
enum class UnmatchedPolicy {
  kCopy,   // copied as they stand from one source rank, as MindSpore does, with a warning
  kDrop,   // left out, with a warning
  kError,  // the conversion is refused, as it is for those that no given strategy has
};

// How closely a conversion looks, before it writes anything, whether the source strategy is the one
// that the source was saved with.
enum class CheckReplicas {
  kNone,    // no content is compared, and one file may stand for several ranks
  kSample,  // some KiB of some parameters, within a bound
  kAll,     // every byte of every shard that several ranks hold
};

// What a run does with files that an interrupted run of the same conversion left whole.
enum class Resume {
  kNo,      // writes all files anew
  kTrust,   // keeps a file that has a part record and its size
  kVerify,  // keeps a file whose digest is that of its part record
};

// Which of several processes, perhaps on several machines, does a part of a conversion.
struct WorkerShare {
  uint64_t index = 0;  // from 0 to count - 1
  uint64_t count = 1;

  friend bool operator==(const WorkerShare&, const WorkerShare&) = default;
};

// The most workers of a conversion.
inline constexpr uint64_t kMaxWorkers = 65536;

// Whether there can be such a worker.
constexpr bool IsWorkerShare(const WorkerShare& shard) {
  return shard.count > 0 && shard.count <= kMaxWorkers && shard.index < shard.count;
}

// How sources are read.
enum class SourceIo {
  kAuto,  // mapped on local file systems, read on network and FUSE file systems
  kMap,   // an error where a file cannot be mapped
  kPread,
};

// How targets are written.
enum class TargetIo {
  kAuto,    // directly on ext4 and XFS, buffered elsewhere
  kDirect,  // past the page cache; an error where the file system does not take it
  kBuffered,
};

struct IoChoice {
  SourceIo source = SourceIo::kAuto;
  TargetIo target = TargetIo::kAuto;
};

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_CONVERSION_OPTIONS_H_
