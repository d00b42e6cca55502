// StagedFile: an output file while it is written, each byte exactly once, in any order.
//
// Bytes go to the disk as they come, so that neither dirty pages nor the target's part of the page
// cache pile up: by direct writes on file systems where that is the fastest way, else with early
// write-back (write_back.h). Several processes may write parts of one file. Move-only. WriteAt may
// be called by any number of threads at a time; everything else by one, while no other call is
// under way. An object that dies before Finish leaves an incomplete file, for the owner of the
// folder to remove.
#ifndef RESHARD_SRC_OS_STAGED_FILE_H_
#define RESHARD_SRC_OS_STAGED_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/file_descriptor.h"
#include "src/os/output_directory.h"
#include "src/os/write_back.h"

namespace reshard {

// How bytes get to the disk.
enum class WriteMode {
  kAuto,  // directly where that has been measured to pay
  kDirect,
  kBuffered,
};

struct WriteOptions {
  WriteMode mode = WriteMode::kAuto;
  WriteBack* write_back = nullptr;  // for what is buffered; null: only Finish writes back
};

class StagedFile {
 public:
  // Chunks whose memory and whose offset are so aligned can be written directly.
  static constexpr size_t kAlignment = 4096;

  // Makes `name` in `folder`, with ordinary permissions, and reserves `size` bytes for it.
  // Errors: kAlreadyExists when there is something of that name; kInvalidArgument where direct
  // writes are wanted and not to be had; kIo, lack of space included.
  static Result<StagedFile> Create(const OutputDirectory& folder, const std::string& name,
                                   uint64_t size, const WriteOptions& options = {});

  // Opens `name`, making it where it is missing, to write `part` of its `size` bytes; others may do
  // the same at the same time. `part` begins at a multiple of kAlignment and ends at one or at the
  // file's end. Errors: as Create; kMismatch for a file of another size.
  static Result<StagedFile> OpenPart(const OutputDirectory& folder, const std::string& name,
                                     uint64_t size, ByteRange part,
                                     const WriteOptions& options = {});

  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Whether the bytes so far were written directly.
  bool direct() const { return direct_; }
  // The bytes written so far.
  uint64_t written() const { return written_; }

  // Writes all of `chunk` at `offset`. Errors: kIo; kInternal for bytes beyond the part.
  Status WriteAt(uint64_t offset, std::span<const std::byte> chunk);

  // Makes the part durable and closes the file; nothing may follow, whatever it returns.
  // Errors: kIo; kInternal when bytes are missing.
  Status Finish();

 private:
  StagedFile(FileDescriptor file, std::string path, uint64_t size, ByteRange part);
  Status ChooseMode(const WriteOptions& options);
  Status Write(uint64_t offset, std::span<const std::byte> bytes);
  Status LeaveDirect();
  Status WriteTail();

  FileDescriptor file_;
  std::string path_;
  uint64_t size_ = 0;
  ByteRange part_;
  WriteBack* write_back_ = nullptr;
  std::atomic<uint64_t> written_ = 0;
  std::atomic<bool> direct_ = false;
  // The end of the file behind the last multiple of kAlignment, which direct writes cannot take.
  // Set by the one call of WriteAt that has it.
  std::string tail_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_STAGED_FILE_H_
