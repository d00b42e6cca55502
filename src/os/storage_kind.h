// What a file system stores its files on, as far as reading and writing care.
#ifndef RESHARD_SRC_OS_STORAGE_KIND_H_
#define RESHARD_SRC_OS_STORAGE_KIND_H_

namespace reshard {

enum class StorageKind {
  kMemory,     // writing is copying; nothing to wait for
  kLocalDisk,  // where direct writes were measured to pay
  kRemote,     // network and FUSE file systems: a map is slow, and writes need their buffering
  kOther,
};

// Returns the kind for the open file or folder `fd`; kOther when that cannot be told. Any thread.
StorageKind StorageOf(int fd);

// Returns whether reads here and there cost about as much as reads in a row: in memory, and on a
// local disk that does not rotate, as far as the kernel says so. Any thread.
bool HasCheapReads(int fd);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_STORAGE_KIND_H_
