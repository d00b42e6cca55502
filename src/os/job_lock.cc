#include "src/os/job_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/errno_status.h"

namespace reshard {
namespace {

constexpr const char* kLockName = "lock";

// The lock's path from the target folder.
std::string LockPath() { return fmt::format("{}/{}", JobLock::kFolderName, kLockName); }

// Whether `file` is still what its name in `folder`, and the folder's in `target`, stand for.
bool IsCurrent(const OutputDirectory& target, const FileDescriptor& file) {
  struct stat held {};
  struct stat named {};
  const std::string name = LockPath();
  return fstat(file.get(), &held) == 0 &&
         fstatat(target.fd(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

Status HeldError(const OutputDirectory& target) {
  return AlreadyExistsError(fmt::format(
      "another reshard run is writing to {}; wait until it has ended, or choose another "
      "target folder",
      Escape(target.path())));
}

}  // namespace

JobLock::JobLock(OutputDirectory folder, FileDescriptor file)
    : folder_(std::move(folder)), file_(std::move(file)) {}

Result<JobLock> JobLock::Acquire(const OutputDirectory& target) {
  // A run that ends removes file and folder, perhaps between any two calls here: then what was
  // opened is nobody's lock any more, and the next attempt makes both anew. Each lost attempt means
  // that another run has just ended.
  constexpr int kAttempts = 100;
  Status failure;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto folder = target.MakeFolder(kFolderName);
    if (!folder.ok()) {
      failure = folder.status();
      if (failure.code() == StatusCode::kNotFound) continue;
      return failure;
    }
    const std::string path = folder->PathOf(kLockName);
    FileDescriptor file(
        openat(folder->fd(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file.valid()) {
      const int error = errno;
      failure = ErrnoStatus(error, "open", path);
      if (error == ENOENT || error == EINTR) continue;
      return failure;
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error == EINTR) continue;
      if (error != EWOULDBLOCK) return ErrnoStatus(error, "lock", path);
      return HeldError(target);
    }
    if (IsCurrent(target, file)) return JobLock(std::move(*folder), std::move(file));
    failure = IoError(Escape(path) + ": the lock's file is replaced again and again");
  }
  return failure;
}

Status JobLock::Check(const OutputDirectory& target) {
  const std::string path = target.PathOf(kFolderName);
  const FileDescriptor file(
      openat(target.fd(), LockPath().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) {
    const int error = errno;
    return error == ENOENT ? Status() : ErrnoStatus(error, "open the lock in", path);
  }
  // Shared, so that those who only ask do not disturb each other.
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return {};
  const int error = errno;
  return error == EWOULDBLOCK ? HeldError(target) : ErrnoStatus(error, "lock", path);
}

Result<bool> JobLock::RemoveFolder(const OutputDirectory& target) const {
  RESHARD_RETURN_IF_ERROR(folder_.RemoveFile(kLockName));
  return target.RemoveFolder(kFolderName);
}

}  // namespace reshard
