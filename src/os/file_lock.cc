#include "src/os/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/errno_status.h"

namespace reshard {
namespace {

constexpr int kOpenFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

int OpenAt(const OutputDirectory& folder, const std::string& name, int flags) {
  int fd = -1;
  do {
    fd = openat(folder.fd(), name.c_str(), flags | kOpenFlags, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool HasNoLocks(int error) {
  return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

}  // namespace

FileLock::FileLock(FileDescriptor file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

Result<FileLock> FileLock::Open(const OutputDirectory& folder, const std::string& name) {
  std::string path = folder.PathOf(name);
  // For writing, because network file systems lock exclusively only what is open for it.
  FileDescriptor file(OpenAt(folder, name, O_RDWR | O_CREAT));
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  return FileLock(std::move(file), std::move(path));
}

Result<FileLock> FileLock::OpenToAsk(const OutputDirectory& folder, const std::string& name) {
  std::string path = folder.PathOf(name);
  FileDescriptor file(OpenAt(folder, name, O_RDONLY));
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  return FileLock(std::move(file), std::move(path));
}

Result<bool> FileLock::Try(Mode mode) const {
  const int operation = mode == Mode::kShared ? LOCK_SH : LOCK_EX;
  while (flock(file_.get(), operation | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) return false;
    if (HasNoLocks(error)) {
      return IoError(ErrnoStatus(error, "lock", path_).message() +
                     "; the file system has no locks that keep runs apart: have it mounted with "
                     "them, or choose a target folder on another one");
    }
    if (error != EINTR) return ErrnoStatus(error, "lock", path_);
  }
  return true;
}

Status FileLock::Wait(const std::stop_token& stop) const {
  // Asked again and again: a flock that waits would not see `stop`, and where a network file system
  // carries it, the kernel asks in the same way.
  constexpr std::chrono::milliseconds kLongest(100);
  std::chrono::milliseconds pause(1);
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (true) {
    RESHARD_ASSIGN_OR_RETURN(const bool had, Try(Mode::kExclusive));
    if (had) return {};
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, pause, [] { return false; });
    if (stop.stop_requested()) {
      return CancelledError(fmt::format("stopped while waiting for {}", Escape(path_)));
    }
    pause = std::min(2 * pause, kLongest);
  }
}

void FileLock::Unlock() const { static_cast<void>(flock(file_.get(), LOCK_UN)); }

bool FileLock::IsNamed(const OutputDirectory& root, const std::string& path) const {
  struct stat held {};
  struct stat named {};
  return fstat(file_.get(), &held) == 0 &&
         fstatat(root.fd(), path.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace reshard
