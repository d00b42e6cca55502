#include "src/os/staged_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/errno_status.h"

namespace reshard {
namespace {

constexpr uint64_t kWriteBackBytes = uint64_t{32} << 20;

// Direct writes wait for each chunk. Local disks answer fast enough, network file systems need
// their own buffering; so only where it has been measured to pay.
bool DirectPays(int fd) {
  constexpr unsigned long kExt4 = 0xEF53;
  constexpr unsigned long kXfs = 0x58465342;
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return false;
  const auto type = static_cast<unsigned long>(system.f_type);
  return type == kExt4 || type == kXfs;
}

bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % StagedFile::kAlignment == 0;
}

// Sets or clears O_DIRECT; false where the file system does not take it.
bool SetDirect(int fd, bool direct) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// Reserves the file's space. fallocate itself, not posix_fallocate, which would write zeros where
// the file system cannot reserve.
Status Reserve(int fd, uint64_t size, const OutputDirectory& folder, const std::string& path) {
  if (size == 0) return {};
  int error = EINTR;
  while (error == EINTR) error = fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (error == 0 || error == EOPNOTSUPP || error == ENOSYS) return {};
  if (error != ENOSPC) return ErrnoStatus(error, fmt::format("reserve {} bytes for", size), path);
  const auto free = folder.FreeBytes();
  return IoError(fmt::format(
      "{}: no space left: the file needs {} bytes, {} are free; free some space there, or choose a "
      "target on another file system",
      Escape(path), size, free.ok() ? fmt::format("{}", *free) : "an unknown number"));
}

}  // namespace

StagedFile::StagedFile(FileDescriptor file, std::string path, uint64_t size, bool direct)
    : file_(std::move(file)), path_(std::move(path)), size_(size), direct_(direct) {}

Result<StagedFile> StagedFile::Create(const OutputDirectory& folder, const std::string& name,
                                      uint64_t size) {
  std::string path = folder.PathOf(name);
  if (size > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return IoError(fmt::format("{}: no file can have {} bytes", Escape(path), size));
  }
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = -1;
  do {
    fd = openat(folder.fd(), name.c_str(), kFlags, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 && errno == EEXIST) return AlreadyExistsError(Escape(path) + ": exists already");
  if (fd < 0) return ErrnoStatus(errno, "make", path);
  FileDescriptor file(fd);
  RESHARD_RETURN_IF_ERROR(Reserve(fd, size, folder, path));
  const bool direct = DirectPays(fd) && SetDirect(fd, true);
  return StagedFile(std::move(file), std::move(path), size, direct);
}

Status StagedFile::LeaveDirect() {
  if (!SetDirect(file_.get(), false)) return ErrnoStatus(errno, "leave direct writing of", path_);
  direct_ = false;
  window_ = dropped_ = written_;
  return {};
}

Status StagedFile::Append(std::span<const std::byte> chunk) {
  if (chunk.size() > size_ - written_) {
    return InternalError(fmt::format("{}: {} bytes at offset {} of a file of {}", Escape(path_),
                                     chunk.size(), written_, size_));
  }
  if (direct_ && IsAligned(chunk.data())) {
    const size_t whole = chunk.size() - chunk.size() % kAlignment;
    RESHARD_RETURN_IF_ERROR(Write(chunk.first(whole)));
    chunk = chunk.subspan(whole);
  }
  if (chunk.empty()) return {};
  if (direct_) RESHARD_RETURN_IF_ERROR(LeaveDirect());
  RESHARD_RETURN_IF_ERROR(Write(chunk));
  return WriteBack();
}

Status StagedFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put =
        pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(written_));
    if (put < 0) {
      if (errno == EINTR) continue;
      // Not taken directly: by the file system, or because a short write has broken the alignment.
      if (errno == EINVAL && direct_) {
        RESHARD_RETURN_IF_ERROR(LeaveDirect());
        continue;
      }
      return ErrnoStatus(
          errno, fmt::format("write {} bytes at offset {} of", bytes.size(), written_), path_);
    }
    if (put == 0) {
      return IoError(fmt::format("{}: no byte was written at offset {}; look at the kernel's log",
                                 Escape(path_), written_));
    }
    written_ += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

// Starts the write-back of the current window when it is full, waits for that of the one before
// and drops its pages. Not what makes the file durable, but an error that it reports here would be
// missing in fsync.
Status StagedFile::WriteBack() {
  if (!write_back_ || written_ - window_ < kWriteBackBytes) return {};
  const auto sync = [&](uint64_t begin, uint64_t end, unsigned flags) -> Status {
    if (begin == end) return {};
    while (sync_file_range(file_.get(), static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                           flags) != 0) {
      if (errno == EINTR) continue;
      write_back_ = false;
      if (errno == ENOSYS || errno == EINVAL || errno == EOPNOTSUPP) return {};
      return ErrnoStatus(errno, fmt::format("write back the bytes {} to {} of", begin, end), path_);
    }
    return {};
  };
  RESHARD_RETURN_IF_ERROR(sync(window_, written_, SYNC_FILE_RANGE_WRITE));
  RESHARD_RETURN_IF_ERROR(
      sync(dropped_, window_,
           SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
  if (window_ > dropped_) {
    // Advice: whether it is taken does not matter.
    static_cast<void>(posix_fadvise(file_.get(), static_cast<off_t>(dropped_),
                                    static_cast<off_t>(window_ - dropped_), POSIX_FADV_DONTNEED));
  }
  dropped_ = window_;
  window_ = written_;
  return {};
}

Status StagedFile::Finish() {
  if (written_ != size_) {
    return InternalError(
        fmt::format("{}: {} bytes were written, expected {}", Escape(path_), written_, size_));
  }
  struct stat found {};
  if (fstat(file_.get(), &found) != 0) return ErrnoStatus(errno, "look up", path_);
  if (static_cast<uint64_t>(found.st_size) != size_) {
    return IoError(
        fmt::format("{}: has {} bytes after {} were written; start again, and look for "
                    "another program that writes to it",
                    Escape(path_), found.st_size, size_));
  }
  // Never retried: after a failure the kernel may call the lost pages clean.
  if (fsync(file_.get()) != 0) return ErrnoStatus(errno, "flush", path_);
  return file_.Close(path_);
}

}  // namespace reshard
