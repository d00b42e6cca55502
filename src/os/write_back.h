// WriteBack: early write-back of buffered writes, for any number of files.
//
// What is written to a file is sent to its disk at once; when more than the budget is on its way,
// the oldest is waited for and its pages are dropped. So what the outputs occupy in the page cache
// is bounded for all files together. It does not make anything durable: only flushing a file does.
//
// Thread-safe. Must outlive the files.
#ifndef RESHARD_SRC_OS_WRITE_BACK_H_
#define RESHARD_SRC_OS_WRITE_BACK_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>

#include "reshard/byte_range.h"
#include "reshard/status.h"

namespace reshard {

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

  // The most bytes that were on their way at a time, and those that are now.
  uint64_t peak() const;
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
  uint64_t peak_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_WRITE_BACK_H_
