#include "src/os/storage_kind.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "src/os/system_call.h"

namespace reshard {

StorageKind StorageOf(int fd) {
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return StorageKind::kOther;
  // Numbers of <linux/magic.h>, and numbers of file systems that are not part of the kernel. On
  // some processors the type is signed and as wide as a register.
  switch (static_cast<uint32_t>(system.f_type)) {
    case 0x0000ef53:  // ext4
    case 0x58465342:  // XFS
      return StorageKind::kLocalDisk;
    case 0x01021994:  // tmpfs
    case 0x858458f6:  // ramfs
      return StorageKind::kMemory;
    case 0x6969:      // NFS
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB2
    case 0x517b:      // SMB
    case 0x65735546:  // FUSE, virtiofs too
    case 0x01021997:  // 9P
    case 0x00c36400:  // Ceph
    case 0x5346414f:  // AFS
    case 0x73757245:  // Coda
    case 0x0bd00bd0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x20030528:  // OrangeFS
      return StorageKind::kRemote;
    default:
      return StorageKind::kOther;
  }
}

// The file systems that StorageOf knows by numbers.
bool IsRemoteType(std::string_view type) {
  constexpr std::string_view kTypes[] = {"nfs",     "nfs4",   "cifs",     "smb3",   "fuse",
                                         "fuseblk", "9p",     "virtiofs", "ceph",   "afs",
                                         "coda",    "lustre", "gpfs",     "beegfs", "pvfs2"};
  return type.starts_with("fuse.") ||
         std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

bool HasCheapReads(int fd) {
  const StorageKind kind = StorageOf(fd);
  if (kind != StorageKind::kLocalDisk) return kind == StorageKind::kMemory;
  struct stat status {};
  if (fstat(fd, &status) != 0) return false;
  const std::string device =
      fmt::format("/sys/dev/block/{}:{}", major(status.st_dev), minor(status.st_dev));
  // A partition has no queue; it lies in the folder of its disk.
  for (const char* queue : {"/queue/rotational", "/../queue/rotational"}) {
    const FileDescriptor file(open((device + queue).c_str(), O_RDONLY | O_CLOEXEC));
    char digit = 0;
    if (file.get() >= 0 && read(file.get(), &digit, 1) == 1) return digit == '0';
  }
  return false;
}

}  // namespace reshard
