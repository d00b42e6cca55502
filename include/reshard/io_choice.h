// How conversions reach the bytes of their files: what one may ask for, and what was used.
//
// Plain values.
//
// Implemented in src/convert.
#ifndef RESHARD_IO_CHOICE_H_
#define RESHARD_IO_CHOICE_H_

#include <cstdint>

namespace reshard {

enum class SourceIo {
  kAuto,  // mapped on local file systems, read on network and FUSE file systems
  kMap,   // an error where a file cannot be mapped
  kPread,
};

enum class TargetIo {
  kAuto,    // directly on ext4 and XFS, buffered elsewhere
  kDirect,  // past the page cache; an error where the file system does not take it
  kBuffered,
};

struct IoChoice {
  SourceIo source = SourceIo::kAuto;
  TargetIo target = TargetIo::kAuto;
};

// Files, by how they were reached.
struct IoUsed {
  uint64_t sources_mapped = 0;
  uint64_t sources_read = 0;
  uint64_t targets_direct = 0;
  uint64_t targets_buffered = 0;
};

}  // namespace reshard

#endif  // RESHARD_IO_CHOICE_H_
