#include "src/os/storage_kind.h"

#include <sys/vfs.h>

namespace reshard {

StorageKind StorageOf(int fd) {
  constexpr unsigned long kExt4 = 0xEF53;
  constexpr unsigned long kXfs = 0x58465342;
  constexpr unsigned long kTmpfs = 0x01021994;
  constexpr unsigned long kRamfs = 0x858458F6;
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return StorageKind::kOther;
  // The type is signed on some processors, and as wide as a register.
  switch (static_cast<unsigned long>(system.f_type) & 0xFFFFFFFF) {
    case kExt4:
    case kXfs:
      return StorageKind::kLocalDisk;
    case kTmpfs:
    case kRamfs:
      return StorageKind::kMemory;
    default:
      return StorageKind::kOther;
  }
}

}  // namespace reshard
