#include "src/os/staged_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/storage_kind.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % StagedFile::kAlignment == 0;
}

// Sets or clears O_DIRECT; false if the file system does not allow it.
bool SetDirect(int fd, bool direct) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// Reserves the file's space. Uses fallocate itself, because posix_fallocate would write zeros if
// the file system cannot reserve.
Status Reserve(int fd, uint64_t size, const OutputDirectory& folder, const std::string& path) {
  if (size == 0) return {};
  const auto call = [&] { return fallocate(fd, 0, 0, static_cast<off_t>(size)); };
  const int error = Uninterrupted(call) == 0 ? 0 : errno;
  if (error == 0 || error == EOPNOTSUPP || error == ENOSYS) return {};
  if (error != ENOSPC) {
    return ErrnoStatus(error, fmt::format("reserve {}", FormatBytes(size)), path);
  }
  const auto free = folder.FreeBytes();
  return IoError(
      fmt::format("{}: not enough space: the file needs {}{}; free some space there, or choose a "
                  "target on another file system",
                  Escape(path), FormatBytes(size),
                  free.ok() && *free ? fmt::format(", but {} are free", FormatBytes(**free)) : ""),
      ENOSPC);
}

// Makes or opens a file to be written.
Result<FileDescriptor> OpenForWriting(const OutputDirectory& folder, const std::string& name,
                                      uint64_t size, int more_flags) {
  const std::string path = folder.PathOf(name);
  if (size > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return IoError(fmt::format("{}: no file can have {}", Escape(path), FormatBytes(size)));
  }
  FileDescriptor file = folder.OpenAt(name, O_WRONLY | O_CREAT | more_flags);
  if (!file.valid() && errno == EEXIST)
    return AlreadyExistsError(Escape(path) + ": exists already");
  if (!file.valid()) return ErrnoStatus(errno, "make", path);
  return file;
}

// Gives a file that may be new its size, if it could not be reserved.
Status Extend(int fd, uint64_t size, const std::string& path) {
  struct stat found {};
  if (fstat(fd, &found) != 0) return ErrnoStatus(errno, "look up", path);
  if (static_cast<uint64_t>(found.st_size) > size) {
    return MismatchError(
        fmt::format("{}: has {} bytes, expected {}; another plan's file is in the way: remove the "
                    "folder .reshard there when no program writes to it",
                    Escape(path), found.st_size, size));
  }
  if (static_cast<uint64_t>(found.st_size) == size) return {};
  if (Uninterrupted([&] { return ftruncate(fd, static_cast<off_t>(size)); }) == 0) return {};
  return ErrnoStatus(errno, fmt::format("extend to {}", FormatBytes(size)), path);
}

}  // namespace

Status WriteBack::Sync(const Piece& piece, unsigned flags) {
  while (works_ && sync_file_range(piece.fd, static_cast<off_t>(piece.range.offset),
                                   static_cast<off_t>(piece.range.length), flags) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    works_ = false;
    if (error == ENOSYS || error == EINVAL || error == EOPNOTSUPP) return {};
    return ErrnoStatus(
        error, fmt::format("write back the bytes {} to {}", piece.range.offset, piece.range.end()),
        piece.path);
  }
  return {};
}

Status WriteBack::Add(int fd, const std::string& path, ByteRange range) {
  if (range.length == 0 || !works_) return {};
  std::list<Piece> added;
  added.push_back({fd, path, range});
  RESHARD_RETURN_IF_ERROR(Sync(added.front(), SYNC_FILE_RANGE_WRITE));
  {
    const std::scoped_lock lock(mutex_);
    pieces_.splice(pieces_.end(), added);
    bytes_ += range.length;
  }
  return WaitFor(budget_);
}

Status WriteBack::WaitFor(uint64_t most) {
  std::unique_lock lock(mutex_);
  while (bytes_ > most) {
    const auto oldest = std::find_if(pieces_.begin(), pieces_.end(),
                                     [](const Piece& piece) { return !piece.busy; });
    if (oldest == pieces_.end()) {  // other threads wait for all that are left
      changed_.wait(lock);
      continue;
    }
    oldest->busy = true;
    lock.unlock();
    Status status = Sync(
        *oldest, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    // Advice: whether it is taken does not matter.
    static_cast<void>(posix_fadvise(oldest->fd, static_cast<off_t>(oldest->range.offset),
                                    static_cast<off_t>(oldest->range.length), POSIX_FADV_DONTNEED));
    lock.lock();
    bytes_ -= oldest->range.length;
    pieces_.erase(oldest);
    changed_.notify_all();
    RESHARD_RETURN_IF_ERROR(status);
  }
  return {};
}

void WriteBack::Forget(int fd) {
  std::unique_lock lock(mutex_);
  // Pieces that a thread waits for keep their descriptor until that thread is done.
  changed_.wait(lock, [&] {
    return std::none_of(pieces_.begin(), pieces_.end(),
                        [fd](const Piece& piece) { return piece.fd == fd && piece.busy; });
  });
  std::erase_if(pieces_, [&](const Piece& piece) {
    if (piece.fd != fd) return false;
    bytes_ -= piece.range.length;
    return true;
  });
}

uint64_t WriteBack::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

StagedFile::StagedFile(FileDescriptor file, std::string path, uint64_t size, ByteRange part)
    : file_(std::move(file)), path_(std::move(path)), size_(size), part_(part) {}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::move(other.path_)),
      size_(other.size_),
      part_(other.part_),
      write_back_(other.write_back_),
      written_(other.written_.load()),
      direct_(other.direct_.load()),
      tail_(std::move(other.tail_)) {}

StagedFile::~StagedFile() {
  if (file_.valid() && write_back_ != nullptr) write_back_->Forget(file_.get());
}

Status StagedFile::ChooseMode(const WriteOptions& options) {
  const int fd = file_.get();
  const StorageKind storage = StorageOf(fd);
  if (storage != StorageKind::kMemory) write_back_ = options.write_back;
  direct_ = IsDirect(options.mode, storage) && SetDirect(fd, true);
  if (options.mode == IoChoice::Target::kDirect && !direct_) {
    return InvalidArgumentError(
        fmt::format("{}: this file system takes no direct writes; choose `io.target=buffered`, or "
                    "leave `io.target` out",
                    Escape(path_)));
  }
  return {};
}

Result<StagedFile> StagedFile::Create(const OutputDirectory& folder, const std::string& name,
                                      uint64_t size, const WriteOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(FileDescriptor fd, OpenForWriting(folder, name, size, O_EXCL));
  StagedFile file(std::move(fd), folder.PathOf(name), size, {0, size});
  RESHARD_RETURN_IF_ERROR(Reserve(file.file_.get(), size, folder, file.path_));
  RESHARD_RETURN_IF_ERROR(file.ChooseMode(options));
  return file;
}

Result<StagedFile> StagedFile::OpenPart(const OutputDirectory& folder, const std::string& name,
                                        uint64_t size, ByteRange part,
                                        const WriteOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(FileDescriptor fd, OpenForWriting(folder, name, size, 0));
  StagedFile file(std::move(fd), folder.PathOf(name), size, part);
  RESHARD_RETURN_IF_ERROR(Reserve(file.file_.get(), size, folder, file.path_));
  RESHARD_RETURN_IF_ERROR(Extend(file.file_.get(), size, file.path_));
  RESHARD_RETURN_IF_ERROR(file.ChooseMode(options));
  return file;
}

// Any number of threads may call this at the same time. Their writes are correct either way.
Status StagedFile::LeaveDirect() {
  if (!SetDirect(file_.get(), false)) return ErrnoStatus(errno, "leave direct writing", path_);
  direct_ = false;
  return {};
}

Status StagedFile::CheckInPart(ByteRange range) const {
  if (range.offset >= part_.offset && range.offset <= part_.end() &&
      range.length <= part_.end() - range.offset) {
    return {};
  }
  return InternalError(fmt::format("{}: {} bytes at offset {} of bytes {} to {}", Escape(path_),
                                   range.length, range.offset, part_.offset, part_.end()));
}

Status StagedFile::BeginWriteBack(ByteRange range) {
  if (direct_ || write_back_ == nullptr) return {};
  return write_back_->Add(file_.get(), path_, range);
}

Status StagedFile::WriteAt(uint64_t offset, std::span<const std::byte> chunk) {
  RESHARD_RETURN_IF_ERROR(CheckInPart({offset, chunk.size()}));
  if (direct_ && IsAligned(chunk.data()) && offset % kAlignment == 0 &&
      offset + chunk.size() == size_) {
    const size_t whole = chunk.size() - chunk.size() % kAlignment;
    tail_.assign(reinterpret_cast<const char*>(chunk.data()) + whole, chunk.size() - whole);
    chunk = chunk.first(whole);
  }
  RESHARD_RETURN_IF_ERROR(Write(offset, chunk));
  return BeginWriteBack({offset, chunk.size()});
}

Status StagedFile::WritePieces(uint64_t offset,
                               std::span<const std::span<const std::byte>> pieces) {
  ByteRange done{offset, 0};
  for (const std::span<const std::byte> piece : pieces) {
    RESHARD_RETURN_IF_ERROR(CheckInPart({done.end(), piece.size()}));
    RESHARD_RETURN_IF_ERROR(Write(done.end(), piece));
    done.length += piece.size();
  }
  return BeginWriteBack(done);
}

Status StagedFile::Write(uint64_t offset, std::span<const std::byte> bytes) {
  if (direct_ &&
      (!IsAligned(bytes.data()) || offset % kAlignment != 0 || bytes.size() % kAlignment != 0)) {
    RESHARD_RETURN_IF_ERROR(LeaveDirect());
  }
  while (!bytes.empty()) {
    const bool direct = direct_;  // or perhaps no longer, when another thread leaves it just now
    const ssize_t put = pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0) {
      if (errno == EINTR) continue;
      // Not taken directly: by the file system, or because a short write has broken the alignment.
      if (errno == EINVAL && direct) {
        RESHARD_RETURN_IF_ERROR(LeaveDirect());
        continue;
      }
      return ErrnoStatus(errno, fmt::format("write {} bytes at offset {}", bytes.size(), offset),
                         path_);
    }
    if (put == 0) {
      return IoError(fmt::format("{}: no byte was written at offset {}; look at the kernel's log",
                                 Escape(path_), offset));
    }
    written_ += static_cast<uint64_t>(put);
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Status StagedFile::WriteTail() {
  if (tail_.empty()) return {};
  if (direct_) RESHARD_RETURN_IF_ERROR(LeaveDirect());
  return Write(size_ - tail_.size(), std::as_bytes(std::span(tail_)));
}

Status StagedFile::Finish() {
  RESHARD_RETURN_IF_ERROR(WriteTail());
  if (written_ != part_.length) {
    return InternalError(fmt::format("{}: {} bytes were written, expected {}", Escape(path_),
                                     written(), part_.length));
  }
  struct stat found {};
  if (fstat(file_.get(), &found) != 0) return ErrnoStatus(errno, "look up", path_);
  if (static_cast<uint64_t>(found.st_size) != size_) {
    return IoError(
        fmt::format("{}: has {} bytes after {} were written; start again, and look for "
                    "another program that writes to it",
                    Escape(path_), found.st_size, written()));
  }
  if (write_back_ != nullptr) write_back_->Forget(file_.get());
  // Never retried: after a failure the kernel may call the lost pages clean.
  if (fsync(file_.get()) != 0) return ErrnoStatus(errno, "flush", path_);
  // Durable bytes need not stay in the page cache. This is advice, so its result does not matter.
  static_cast<void>(posix_fadvise(file_.get(), static_cast<off_t>(part_.offset),
                                  static_cast<off_t>(part_.length), POSIX_FADV_DONTNEED));
  return file_.Close(path_);
}

}  // namespace reshard
