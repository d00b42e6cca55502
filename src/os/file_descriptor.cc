#include "src/os/file_descriptor.h"

#include <unistd.h>

#include <cerrno>

#include "src/os/errno_status.h"

namespace reshard {

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

Status FileDescriptor::Close(const std::string& path) {
  const int fd = std::exchange(fd_, -1);
  // Linux frees the descriptor even when close fails, so that a retry could close another thread's
  // file. EINTR says nothing about the data.
  if (fd >= 0 && close(fd) != 0 && errno != EINTR) return ErrnoStatus(errno, "close", path);
  return {};
}

}  // namespace reshard
