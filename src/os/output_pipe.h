// OutputPipe: bytes on their way to another program, or to wherever standard output leads.
#ifndef RESHARD_SRC_OS_OUTPUT_PIPE_H_
#define RESHARD_SRC_OS_OUTPUT_PIPE_H_

#include <cstddef>
#include <span>
#include <string>

#include "reshard/status.h"
#include "src/os/system_call.h"

namespace reshard {

// Move-only; one thread at a time. If SIGPIPE is ignored, a reader that has gone is kIo.
class OutputPipe {
 public:
  // Returns whether bytes can be passed on at `path`: a pipe, a socket's file or a character
  // device, or a link to one.
  static bool IsAt(const std::string& path);

  // Opens a pipe or device; of a pipe, waits until a program opens it for reading. Errors:
  // kInvalidArgument for a terminal; kIo.
  static Result<OutputPipe> Open(const std::string& path);

  // Standard output, which stays open. Errors: kInvalidArgument for a terminal.
  static Result<OutputPipe> StandardOutput();

  // Releases a program that waits for the pipe at `path` to be opened: it gets the end of the data.
  // Has no effect if no program waits.
  static void Dismiss(const std::string& path);

  // Writes all bytes. Errors: kIo.
  Status Write(std::span<const std::byte> bytes);

  // Errors: kIo.
  Status Close();

 private:
  OutputPipe(FileDescriptor owned, int fd, std::string name)
      : owned_(std::move(owned)), fd_(fd), name_(std::move(name)) {}
  Status Prepare() const;

  FileDescriptor owned_;  // empty for standard output
  int fd_ = -1;
  std::string name_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_OUTPUT_PIPE_H_
