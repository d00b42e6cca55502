// The kind of storage below a file system, as far as reading and writing depend on it.
#ifndef RESHARD_SRC_OS_STORAGE_KIND_H_
#define RESHARD_SRC_OS_STORAGE_KIND_H_

#include <string_view>

namespace reshard {

enum class StorageKind {
  kMemory,     // a write is a copy, without waits
  kLocalDisk,  // direct writes were measured to be faster
  kRemote,     // network and FUSE file systems: a map is slow, and writes need their buffering
  kOther,
};

// Returns the kind for the open file or folder `fd`; kOther when that cannot be told. Any thread.
StorageKind StorageOf(int fd);

// Returns whether file systems of this type, by its name in the table of mounts, are kRemote. Asks
// no file system, whose server may have died.
bool IsRemoteType(std::string_view type);

// Returns whether reads at scattered offsets cost about as much as sequential reads: in memory, and
// on a local disk that does not rotate, as far as the kernel says so. Any thread.
bool HasCheapReads(int fd);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_STORAGE_KIND_H_
