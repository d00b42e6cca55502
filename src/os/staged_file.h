// An output file while it is written, and what is on its way to the disk of all of them.
#ifndef RESHARD_SRC_OS_STAGED_FILE_H_
#define RESHARD_SRC_OS_STAGED_FILE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <string>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/os/storage_kind.h"
#include "src/os/system_call.h"

namespace reshard {

// WriteBack: early write-back of buffered writes, for any number of files.
//
// What is written to a file is sent to its disk at once; when more than the budget is on its way,
// the oldest is waited for and its pages are dropped. So what the outputs occupy in the page cache
// is bounded for all files together. It does not make anything durable: only flushing a file does.
//
// Thread-safe. Must outlive the files.
class WriteBack {
 public:
  explicit WriteBack(uint64_t budget) : budget_(budget) {}
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;

  // Takes over `range` of the open file `fd`, which was just written. May wait for what was added
  // before, of any file. Errors: kIo, naming the file whose bytes the disk did not take: what is
  // told here would be missing when that file is flushed.
  Status Add(int fd, const std::string& path, ByteRange range);

  // Forgets what was added of `fd`, which is about to be flushed or closed.
  void Forget(int fd);

  // The bytes that are on their way now.
  uint64_t bytes() const;

 private:
  struct Piece {
    int fd = -1;
    std::string path;
    ByteRange range;
    bool busy = false;  // a thread waits for it, outside the lock
  };

  Status Sync(const Piece& piece, unsigned flags);
  // Waits until at most `most` bytes are on their way.
  Status WaitFor(uint64_t most);

  const uint64_t budget_;
  std::atomic<bool> works_ = true;  // the system has a way to start write-back
  mutable std::mutex mutex_;        // guards what follows
  std::condition_variable changed_;
  std::list<Piece> pieces_;  // oldest first
  uint64_t bytes_ = 0;       // of pieces_
};

// StagedFile: an output file while it is written, each byte exactly once, in any order.
//
// Bytes go to the disk as they come, so that neither dirty pages nor the target's part of the page
// cache pile up: by direct writes on file systems where that is the fastest way, else with early
// write-back (WriteBack). Several processes may write parts of one file. Move-only. WriteAt and
// WritePieces may be called by any number of threads at a time; everything else by one, while no
// other call is under way. An object that dies before Finish leaves an incomplete file, for the
// owner of the folder to remove.
//
// How bytes get to the disk.
enum class WriteMode {
  kAuto,  // directly where that has been measured to pay
  kDirect,
  kBuffered,
};

// Whether files on `storage` are to be written past the page cache, where they take that.
constexpr bool IsDirect(WriteMode mode, StorageKind storage) {
  return mode == WriteMode::kDirect ||
         (mode == WriteMode::kAuto && storage == StorageKind::kLocalDisk);
}

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
  // The same of a chunk in pieces, one behind the other. They are written back together.
  Status WritePieces(uint64_t offset, std::span<const std::span<const std::byte>> pieces);

  // Makes the part durable and closes the file; nothing may follow, whatever it returns.
  // Errors: kIo; kInternal when bytes are missing.
  Status Finish();

 private:
  StagedFile(FileDescriptor file, std::string path, uint64_t size, ByteRange part);
  Status ChooseMode(const WriteOptions& options);
  Status CheckInPart(ByteRange range) const;
  Status Write(uint64_t offset, std::span<const std::byte> bytes);
  Status BeginWriteBack(ByteRange range);
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
