// ByteOutput: the destination of bytes that a front end passes on: standard output, a pipe, or a
// file that appears whole.
#ifndef RESHARD_SRC_FRONTEND_BYTE_OUTPUT_H_
#define RESHARD_SRC_FRONTEND_BYTE_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "reshard/status.h"

namespace reshard {

// Move-only; one thread at a time.
class ByteOutput {
 public:
  // `path`: empty for standard output, else a file, a pipe or a device. Does not make or open it.
  // Errors: kInvalidArgument for a terminal; as CheckWritable (write_file.h) for a file, with
  // kAlreadyExists unless `replace`.
  static Result<ByteOutput> Make(const std::string& path, bool replace);

  ByteOutput(ByteOutput&& other) noexcept;
  ByteOutput& operator=(ByteOutput&&) = delete;
  // Removes a file that was not finished. A program that waits for a pipe that was not opened gets
  // the end of the data.
  ~ByteOutput();

  // Opens the output for `size` bytes; for a pipe, waits for a reader. Errors: as SingleOutput,
  // StagedFile and OutputPipe.
  Status Open(uint64_t size);

  // Writes the next bytes. Errors: kIo.
  Status Write(std::span<const std::byte> bytes);

  // Puts a file in place that has all its bytes, and closes a pipe. Errors: kIo.
  Status Finish();

 private:
  class Impl;
  explicit ByteOutput(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_BYTE_OUTPUT_H_
