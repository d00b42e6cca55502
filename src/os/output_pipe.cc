#include "src/os/output_pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {

bool OutputPipe::IsAt(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 &&
         (S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode) || S_ISSOCK(found.st_mode));
}

Result<OutputPipe> OutputPipe::Open(const std::string& path) {
  FileDescriptor fd(
      Uninterrupted([&] { return open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY); }));
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  const int number = fd.get();
  OutputPipe pipe(std::move(fd), number, path);
  RESHARD_RETURN_IF_ERROR(pipe.Prepare());
  return pipe;
}

Result<OutputPipe> OutputPipe::StandardOutput() {
  OutputPipe pipe({}, STDOUT_FILENO, "standard output");
  RESHARD_RETURN_IF_ERROR(pipe.Prepare());
  return pipe;
}

void OutputPipe::Dismiss(const std::string& path) {
  // Fails if no program waits.
  const FileDescriptor fd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

Status OutputPipe::Prepare() const {
  if (isatty(fd_) == 1) {
    return InvalidArgumentError(fmt::format(
        "{}: is a terminal, and a checkpoint is no text; pass it on by a pipe, or name a file",
        Escape(name_)));
  }
  // The greatest size for every user, so that writer and reader take fewer turns. Fails if it is
  // not a pipe.
  constexpr int kPipeBytes = 1 << 20;
  static_cast<void>(fcntl(fd_, F_SETPIPE_SZ, kPipeBytes));
  return {};
}

Status OutputPipe::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = Uninterrupted([&] { return write(fd_, bytes.data(), bytes.size()); });
    if (written < 0 && errno == EPIPE) {
      return IoError(fmt::format("{}: its reader has gone before it had all bytes", Escape(name_)),
                     EPIPE);
    }
    if (written < 0) return ErrnoStatus(errno, "write", name_);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status OutputPipe::Close() { return owned_.Close(name_); }

}  // namespace reshard
