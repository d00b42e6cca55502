#include "src/os/local_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/file_pages.h"
#include "src/os/paths.h"
#include "src/os/storage_kind.h"

namespace reshard {
namespace {

Status NotRegular(const std::string& path, std::string_view kind) {
  return CorruptError(fmt::format("{}: expected a regular file, found {}", Escape(path), kind));
}

Status ChangedInUse(const std::string& path, std::string_view how) {
  return ChangedError(fmt::format(
      "{}: the file changed while it was in use: {}; start again when no program writes to the "
      "sources",
      Escape(path), how));
}

std::string_view KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Result<LocalFile> LocalFile::Open(const std::string& path) {
  return Retried(path, [&] { return OpenOnce(path); });
}

Result<LocalFile> LocalFile::OpenOnce(const std::string& path) {
  // O_NONBLOCK: without it, opening a pipe would wait for its writer. It has no effect on a regular
  // file.
  FileDescriptor file(Uninterrupted(
      [&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!file.valid() && errno == ENXIO) {
    return NotRegular(path, "a socket, or a device that is not there");
  }
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return ErrnoStatus(errno, "look up", path);
  if (!S_ISREG(status.st_mode)) return NotRegular(path, KindName(status.st_mode));
  // A failure of this advice does no harm. Reads hop from header to header, and each asks for all
  // bytes that it needs.
  static_cast<void>(posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM));
  return LocalFile(path, IdentityFromStat(status), std::move(file));
}

Result<size_t> LocalFile::ReadFrom(int descriptor, uint64_t offset,
                                   std::span<std::byte> destination) const {
  size_t done = 0;
  while (done < destination.size()) {
    const auto at = static_cast<off_t>(offset + done);
    const ssize_t count = Uninterrupted([&] {
      return pread(descriptor, destination.data() + done, destination.size() - done, at);
    });
    if (count < 0) return ErrnoStatus(errno, fmt::format("read at offset {}", at), path());
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

Status LocalFile::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  RESHARD_RETURN_IF_ERROR(CheckRange(offset, destination.size()));
  Result<size_t> count = ReadFrom(descriptor_.get(), offset, destination);
  if (!count.ok() && retries_ != nullptr) {
    const auto is_remote = [this] { return IsOnRemote(descriptor_.get()); };
    const auto read_again = [&](const Status& failed) -> Status {
      if (failed.system_error() == ESTALE) RESHARD_RETURN_IF_ERROR(Reopen());
      count = ReadFrom(descriptor_.get(), offset, destination);
      return count.status();
    };
    RESHARD_RETURN_IF_ERROR(retries_->Repeat(count.status(), is_remote, read_again));
  }
  if (!count.ok()) return count.status();
  if (*count == destination.size()) return {};
  return ChangedError(fmt::format(
      "{}: the file shrank from {} to at most {} bytes while it was read; start again when "
      "nothing writes to it",
      Escape(path()), size(), offset + *count));
}

Status LocalFile::Reopen() const {
  const Result<LocalFile> opened = OpenOnce(path());
  const bool is_gone = opened.status().code() == StatusCode::kNotFound;
  if (!opened.ok() && !is_gone) return opened.status();
  if (is_gone || opened->identity() != identity()) {
    return ChangedInUse(path(),
                        is_gone ? "it is gone" : DescribeChange(identity(), opened->identity()));
  }
  const int now = opened->descriptor_.get();
  if (Uninterrupted([&] { return dup3(now, descriptor_.get(), O_CLOEXEC); }) >= 0) return {};
  return ErrnoStatus(errno, "open", path());
}

FileDescriptor LocalFile::OpenPastCache() const {
  // By its descriptor: at its path may lie another file by now.
  return FileDescriptor(open(fmt::format("/proc/self/fd/{}", descriptor_.get()).c_str(),
                             O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT));
}

bool LocalFile::ReadPastCache(const FileDescriptor& opened, uint64_t offset,
                              std::span<std::byte> destination) const {
  const Result<size_t> count = ReadFrom(opened.get(), offset, destination);
  return count.ok() && *count == destination.size();
}

void LocalFile::Prefetch(ByteRange range) const {
  // Each call begins at a page, as the kernel counts its pages.
  uint64_t at = range.offset / PageSize() * PageSize();
  for (; at < range.end(); at += kPrefetchBytes) {
    static_cast<void>(posix_fadvise(descriptor_.get(), static_cast<off_t>(at),
                                    static_cast<off_t>(std::min(kPrefetchBytes, range.end() - at)),
                                    POSIX_FADV_WILLNEED));
  }
}

bool LocalFile::IsRemote() const { return StorageOf(descriptor_.get()) == StorageKind::kRemote; }

bool LocalFile::HasCheapReads() const { return reshard::HasCheapReads(descriptor_.get()); }

Status LocalFile::Map(MapPages pages) {
  RESHARD_ASSIGN_OR_RETURN(map_, MapWhole(MapAccess::kRead));
  AdviseRandom(map_.get(), size());
  reads_large_pages_ = pages == MapPages::kLarge && AdviseLargePages(map_.get(), size());
  return {};
}

Result<std::shared_ptr<std::byte>> LocalFile::MapWhole(MapAccess access) const {
  return MapFile(descriptor_.get(), size(), path(), access);
}

Status LocalFile::Populate(ByteRange range) const {
  const std::optional<size_t> fault = reshard::Populate(map_.get() + range.offset, range.length);
  return fault ? ExplainFault(range.offset + *fault) : Status();
}

void LocalFile::Unmap(ByteRange range) const { DropPages(map_.get() + range.offset, range.length); }

Residency LocalFile::FindUncached(ByteRange range,
                                  const std::function<void(ByteRange)>& visit) const {
  return reshard::FindUncached(descriptor_.get(), size(), map(), range, visit);
}

bool LocalFile::DropCached(ByteRange range) const {
  return reshard::DropCached(descriptor_.get(), size(), range);
}

Status LocalFile::CheckUnchanged() const {
  struct stat status {};
  if (fstat(descriptor_.get(), &status) != 0) return ErrnoStatus(errno, "look up", path());
  const FileIdentity now = IdentityFromStat(status);
  if (now == identity()) return {};
  return ChangedInUse(path(), DescribeChange(identity(), now));
}

Status LocalFile::ExplainFault(uint64_t offset) const {
  RESHARD_RETURN_IF_ERROR(CheckUnchanged());
  return IoError(
      fmt::format("{}: cannot read the page at offset {}: the disk or the file system does not "
                  "deliver it; look at the kernel's log",
                  Escape(path()), offset),
      EIO);
}

}  // namespace reshard
