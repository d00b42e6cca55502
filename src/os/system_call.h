// What system calls need: a status for an errno, an owner for a descriptor.
#ifndef RESHARD_SRC_OS_SYSTEM_CALL_H_
#define RESHARD_SRC_OS_SYSTEM_CALL_H_

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "reshard/status.h"

namespace reshard {

// Calls a system function until no signal interrupts it, and returns what it returned.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

// Returns the failure of a system call: `error` is its errno (not 0), `operation` a verb that
// follows "cannot", such as "open" or "write 4096 bytes at offset 8 of". The message reads
//     PATH: cannot OPERATION: what the system says; what to do about it
// ENOENT becomes kNotFound, ENOMEM kResourceExhausted, everything else kIo; Status::system_error
// is `error`. ENOENT of a URL is what CheckIsPath returns.
Status ErrnoStatus(int error, std::string_view operation, const std::string& path);

// Fails for a URL, such as "s3://bucket/x": only files of mounted file systems are read and
// written. Where the work folder has a folder "s3:", this is a path in that one. ErrnoStatus says
// the same of files that are not found; what takes a path for one that need not exist calls this
// first. Errors: kUnsupported.
Status CheckIsPath(const std::string& path);

// FileDescriptor: the owner of one open descriptor.
//
// Move-only; closes what it owns when it dies. A writer calls Close() first, because a failing
// close is then reported. Distinct objects may be used by distinct threads.
class FileDescriptor {
 public:
  FileDescriptor() = default;  // owns nothing
  // Takes the ownership of `fd`, which open() and its like returned; -1 owns nothing.
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

  // Closes the descriptor; afterwards nothing is owned, whatever it returns. `path` names the file
  // in the message. Ok when nothing is owned.
  Status Close(const std::string& path);

 private:
  int fd_ = -1;
};

// Returns how many descriptors this process may have open (`ulimit -n`); where that cannot be told,
// what POSIX grants to everybody. Any thread.
size_t DescriptorLimit();

}  // namespace reshard

#endif  // RESHARD_SRC_OS_SYSTEM_CALL_H_
