// StagedFile: an output file while it is written, front to back, exactly once.
//
// Bytes go to the disk as they come, so that neither dirty pages nor the target's part of the page
// cache pile up: by direct writes on file systems where that is the fastest way, else with early
// write-back, dropping what is written. Move-only; used by one thread at a time. An object that
// dies before Finish leaves an incomplete file, for the owner of the folder to remove.
#ifndef RESHARD_SRC_OS_STAGED_FILE_H_
#define RESHARD_SRC_OS_STAGED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "reshard/status.h"
#include "src/os/file_descriptor.h"
#include "src/os/output_directory.h"

namespace reshard {

class StagedFile {
 public:
  // Chunks whose memory is so aligned, and whose size is a multiple of it, can be written directly.
  static constexpr size_t kAlignment = 4096;

  // Makes `name` in `folder`, with ordinary permissions, and reserves `size` bytes for it.
  // Errors: kAlreadyExists when there is something of that name; kIo, lack of space included.
  static Result<StagedFile> Create(const OutputDirectory& folder, const std::string& name,
                                   uint64_t size);

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // The bytes written so far.
  uint64_t written() const { return written_; }

  // Writes all of `chunk` behind what is there. Errors: kIo; kInternal for more than `size` bytes.
  Status Append(std::span<const std::byte> chunk);

  // Makes the file durable and closes it; nothing may follow, whatever it returns.
  // Errors: kIo; kInternal when bytes are missing.
  Status Finish();

 private:
  StagedFile(FileDescriptor file, std::string path, uint64_t size, bool direct);
  Status Write(std::span<const std::byte> bytes);
  Status LeaveDirect();
  Status WriteBack();

  FileDescriptor file_;
  std::string path_;
  uint64_t size_ = 0;
  uint64_t written_ = 0;
  bool direct_ = false;
  bool write_back_ = true;
  uint64_t window_ = 0;   // where the bytes begin whose write-back has not been started
  uint64_t dropped_ = 0;  // where the bytes begin that are not yet on the disk
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_STAGED_FILE_H_
