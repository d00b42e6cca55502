#include "src/os/write_in_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "src/base/quote.h"
#include "src/os/system_call.h"

namespace reshard {

Status WriteInPlace(const OutputDirectory& folder, const std::string& name,
                    std::string_view bytes) {
  const std::string path = folder.PathOf(name);
  // O_NONBLOCK: a pipe in its place does not hold the caller up.
  FileDescriptor file(Uninterrupted([&] {
    return openat(folder.fd(), name.c_str(),
                  O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  }));
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  const ssize_t written =
      Uninterrupted([&] { return pwrite(file.get(), bytes.data(), bytes.size(), 0); });
  if (written < 0) return ErrnoStatus(errno, "write", path);
  if (static_cast<size_t>(written) != bytes.size()) {
    return IoError(
        fmt::format("{}: {} of {} bytes were written", Escape(path), written, bytes.size()));
  }
  return file.Close(path);
}

}  // namespace reshard
