#include "src/os/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/os/file_pages.h"
#include "src/os/paths.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

Status NotRegular(const std::string& path, std::string_view kind) {
  return CorruptError(fmt::format("{}: expected a regular file, found {}", Escape(path), kind));
}

std::string_view KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Result<InputFile> OpenInputFile(const std::string& path) {
  // O_NONBLOCK: without it, opening a pipe would wait for its writer. It has no effect on a regular
  // file.
  int fd = -1;
  do {
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 && errno == ENXIO) return NotRegular(path, "a socket, or a device that is not there");
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  FileDescriptor descriptor(fd);

  struct stat status {};
  if (fstat(fd, &status) != 0) return ErrnoStatus(errno, "look up", path);
  if (!S_ISREG(status.st_mode)) return NotRegular(path, KindName(status.st_mode));
  const FileIdentity identity = IdentityFromStat(status);
  // A failure of this advice does no harm. Reads hop from header to header, and each asks for all
  // bytes that it needs.
  static_cast<void>(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
  return InputFile{std::move(descriptor), identity};
}

Result<FileIdentity> IdentityOfOpen(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return ErrnoStatus(errno, "look up", path);
  return IdentityFromStat(status);
}

Result<size_t> ReadInputFile(int descriptor, const std::string& path, uint64_t offset,
                             std::span<std::byte> destination) {
  size_t done = 0;
  while (done < destination.size()) {
    const ssize_t count = pread(descriptor, destination.data() + done, destination.size() - done,
                                static_cast<off_t>(offset + done));
    if (count < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, fmt::format("read at offset {}", offset + done), path);
    }
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

FileDescriptor ReopenDirect(int descriptor) {
  // By its descriptor: at its path may lie another file by now.
  return FileDescriptor(open(fmt::format("/proc/self/fd/{}", descriptor).c_str(),
                             O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT));
}

Status ReplaceDescriptor(int other, int descriptor, const std::string& path) {
  if (Uninterrupted([&] { return dup3(other, descriptor, O_CLOEXEC); }) >= 0) return {};
  return ErrnoStatus(errno, "open", path);
}

void PrefetchInputFile(int descriptor, ByteRange range) {
  for (uint64_t at = 0; at < range.length; at += kPrefetchBytes) {
    static_cast<void>(posix_fadvise(descriptor, static_cast<off_t>(range.offset + at),
                                    static_cast<off_t>(std::min(kPrefetchBytes, range.length - at)),
                                    POSIX_FADV_WILLNEED));
  }
}

}  // namespace reshard
