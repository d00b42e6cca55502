// FileDescriptor: the owner of one open descriptor.
//
// Move-only; closes what it owns when it dies. A writer calls Close() first, because a failing
// close is then reported. Distinct objects may be used by distinct threads.
#ifndef RESHARD_SRC_OS_FILE_DESCRIPTOR_H_
#define RESHARD_SRC_OS_FILE_DESCRIPTOR_H_

#include <string>
#include <utility>

#include "reshard/status.h"

namespace reshard {

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

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_DESCRIPTOR_H_
