// FileIdentity: what tells that a file is still the one that was opened, unchanged.
//
// A plain value. Times are nanoseconds since 1970; how finely a file system counts them is its own
// matter.
#ifndef RESHARD_SRC_OS_FILE_IDENTITY_H_
#define RESHARD_SRC_OS_FILE_IDENTITY_H_

#include <cstdint>
#include <string>

#include "reshard/status.h"

namespace reshard {

struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;  // bytes
  int64_t mtime_ns = 0;
  // Set by the kernel at every change of content or attributes; no program can set it back, as it
  // can mtime.
  int64_t ctime_ns = 0;

  bool operator==(const FileIdentity&) const = default;
};

// Returns the identity of the file at `path`, symbolic links followed.
// Errors: kNotFound, kIo.
Result<FileIdentity> IdentityOf(const std::string& path);

// Returns in words how `after` differs from `before`, such as "8192 bytes, were 4096".
std::string DescribeChange(const FileIdentity& before, const FileIdentity& after);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_IDENTITY_H_
