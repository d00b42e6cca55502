#include "src/os/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/map_advice.h"
#include "src/os/paths.h"
#include "src/os/storage_kind.h"
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

Result<InputFile> InputFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe would wait for its writer. It means nothing to the reads of a
  // regular file.
  int fd = -1;
  do {
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 && errno == ENXIO) return NotRegular(path, "a socket, or a device that is not there");
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  FileDescriptor descriptor(fd);

  struct stat status {};
  if (fstat(fd, &status) != 0) return ErrnoStatus(errno, "look at", path);
  if (!S_ISREG(status.st_mode)) return NotRegular(path, KindName(status.st_mode));
  // Advice; that it fails harms nothing. Reads hop from header to header, each asks for all that it
  // wants.
  static_cast<void>(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
  return InputFile(path, std::move(descriptor), IdentityFromStat(status));
}

Result<FileIdentity> InputFile::CurrentIdentity() const {
  struct stat status {};
  if (fstat(descriptor(), &status) != 0) return ErrnoStatus(errno, "look at", path_);
  return IdentityFromStat(status);
}

Status InputFile::CheckRange(uint64_t offset, uint64_t length) const {
  if (offset <= size() && length <= size() - offset) return {};
  return CorruptError(fmt::format(
      "{}: expected {} bytes at offset {}, found {}: the file ends at {}; is it cut off?",
      Escape(path_), length, offset, offset < size() ? size() - offset : 0, size()));
}

Status InputFile::ReadAt(uint64_t offset, std::span<std::byte> destination) const {
  RESHARD_RETURN_IF_ERROR(CheckRange(offset, destination.size()));
  while (!destination.empty()) {
    const ssize_t count =
        pread(descriptor(), destination.data(), destination.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, fmt::format("read at offset {}", offset), path_);
    }
    if (count == 0) {
      return ChangedError(fmt::format(
          "{}: the file shrank from {} to at most {} bytes while it was read; start again when "
          "nothing writes to it",
          Escape(path_), size(), offset));
    }
    offset += static_cast<uint64_t>(count);
    destination = destination.subspan(static_cast<size_t>(count));
  }
  return {};
}

void InputFile::Prefetch(uint64_t offset, uint64_t length) const {
  for (uint64_t at = 0; at < length; at += kPrefetchBytes) {
    static_cast<void>(posix_fadvise(descriptor(), static_cast<off_t>(offset + at),
                                    static_cast<off_t>(std::min(kPrefetchBytes, length - at)),
                                    POSIX_FADV_WILLNEED));
  }
}

bool InputFile::IsRemote() const { return StorageOf(descriptor()) == StorageKind::kRemote; }

Result<std::string> ReadFile(const std::string& path, uint64_t limit) {
  RESHARD_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() > limit) {
    return CorruptError(
        fmt::format("{}: expected at most {} bytes, found {}; is it the right file?", Escape(path),
                    limit, file.size()));
  }
  std::string content(file.size(), '\0');
  RESHARD_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(content))));
  return content;
}

}  // namespace reshard
