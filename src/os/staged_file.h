// An output file while it is written, and the bytes of all such files on their way to the disk.
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
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/os/storage_kind.h"
#include "src/os/system_call.h"

namespace reshard {

// WriteBack: early write-back of buffered writes, for any number of files.
//
// Written bytes are sent to the disk at once. If more bytes than the budget are on their way, it
// waits for the oldest and drops their pages. So the outputs' part of the page cache is bounded for
// all files together. Bytes are durable only after a flush of their file.
//
// Thread-safe. Must outlive the files.
class WriteBack {
 public:
  explicit WriteBack(uint64_t budget) : budget_(budget) {}
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;

  // Takes over `range` of the open file `fd`, which was just written. May wait for earlier ranges
  // of any file. Errors: kIo, naming the file whose bytes the disk did not take. The system reports
  // this error once, so a later flush of the file would not.
  Status Add(int fd, const std::string& path, ByteRange range);

  // Forgets the ranges of `fd`, which is about to be flushed or closed.
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
  mutable std::mutex mutex_;        // guards the members below
  std::condition_variable changed_;
  std::list<Piece> pieces_;  // oldest first
  uint64_t bytes_ = 0;       // of pieces_
};

// Whether files on `storage` should be written past the page cache, if they allow that.
constexpr bool IsDirect(IoChoice::Target mode, StorageKind storage) {
  return mode == IoChoice::Target::kDirect ||
         (mode == IoChoice::Target::kAuto && storage == StorageKind::kLocalDisk);
}

struct WriteOptions {
  IoChoice::Target mode = IoChoice::Target::kAuto;
  WriteBack* write_back = nullptr;  // for buffered writes; null: only Finish writes back
};

// StagedFile: an output file while it is written, each byte exactly once, in any order.
//
// Bytes go to the disk as they come, so that dirty pages and the target's part of the page cache
// stay small. They go by direct writes on file systems where that is the fastest way, else with
// early write-back (WriteBack). Several processes may write parts of a file.
//
// Move-only. Any number of threads may call WriteAt and WritePieces at a time. One thread calls all
// other functions, while no other call is under way. An object that dies before Finish leaves an
// incomplete file, which the owner of the folder removes.
class StagedFile {
 public:
  // A chunk can be written directly if its memory and its offset are aligned so.
  static constexpr size_t kAlignment = 4096;

  // Makes `name` in `folder`, with ordinary permissions, and reserves `size` bytes for it.
  // Errors:
  //   kAlreadyExists: an entry of that name exists
  //   kInvalidArgument: direct writes are required and not supported
  //   kIo: also for lack of space
  static Result<StagedFile> Create(const OutputDirectory& folder, const std::string& name,
                                   uint64_t size, const WriteOptions& options = {});

  // Opens `name`, or makes it, to write `part` of its `size` bytes. Other processes may do the same
  // at the same time. `part` begins at a multiple of kAlignment, and ends at a multiple or at the
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

  // Makes the part durable and closes the file. It is the last call, for any result. Errors: kIo;
  // kInternal if bytes are missing.
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
