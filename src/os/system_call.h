// Basics for system calls: a status for an errno, an owner for a descriptor.
#ifndef RESHARD_SRC_OS_SYSTEM_CALL_H_
#define RESHARD_SRC_OS_SYSTEM_CALL_H_

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "reshard/status.h"

namespace reshard {

// Calls a system function until no signal interrupts it, and returns its result.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

// Returns the failure of a system call. `error` is its errno (not 0). `operation` is a verb phrase
// that follows "cannot", such as "open" or "read at offset 8". The message reads
//     PATH: cannot OPERATION: the system's words; advice
// ENOENT becomes kNotFound, ENOMEM kResourceExhausted, all others kIo. Status::system_error is
// `error`. For ENOENT of a URL, returns the result of CheckIsPath.
Status ErrnoStatus(int error, std::string_view operation, const std::string& path);

// Fails for a URL, such as "s3://bucket/x", because only files of mounted file systems are read and
// written. If the work folder has a folder "s3:", this is a path in it. ErrnoStatus gives the same
// error for missing files. A function whose path need not exist calls CheckIsPath first. Errors:
// kUnsupported.
Status CheckIsPath(const std::string& path);

// FileDescriptor: the owner of an open descriptor.
//
// Move-only; closes its descriptor when it dies. A writer calls Close() first, which reports a
// failed close. Distinct threads may use distinct objects.
class FileDescriptor {
 public:
  FileDescriptor() = default;  // owns nothing
  // Takes the ownership of `fd`, the result of open() or a similar call; -1: no descriptor.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }

  // Closes the descriptor and gives up its ownership, for any result. `path` names the file in the
  // message. Ok if there is no descriptor.
  Status Close(const std::string& path);

 private:
  int fd_ = -1;
};

// Returns how many descriptors this process may have open (`ulimit -n`). If that is unknown,
// returns the minimum that POSIX grants. Any thread.
size_t DescriptorLimit();

}  // namespace reshard

#endif  // RESHARD_SRC_OS_SYSTEM_CALL_H_
