// ReadTurns: limits the files that are read at a time, so that their plans fit the memory for
// plans.
//
// Thread-safe.
#ifndef RESHARD_SRC_CONVERT_READ_TURNS_H_
#define RESHARD_SRC_CONVERT_READ_TURNS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace reshard {

class ReadTurns {
 public:
  // Called before the first read; without a call, there is no limit.
  void SetMost(size_t files) { most_ = files; }

  // One read of a file. Waits until the file is among those that are read.
  class Turn {
   public:
    Turn(ReadTurns& turns, size_t file) : turns_(turns), file_(file) {
      std::unique_lock lock(turns_.mutex_);
      turns_.ended_.wait(lock, [&] {
        return turns_.readers_.contains(file_) || turns_.readers_.size() < turns_.most_;
      });
      ++turns_.readers_[file_];
    }
    ~Turn() {
      const std::lock_guard lock(turns_.mutex_);
      const auto readers = turns_.readers_.find(file_);
      if (--readers->second > 0) return;
      turns_.readers_.erase(readers);
      turns_.ended_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    ReadTurns& turns_;
    const size_t file_;
  };

 private:
  std::mutex mutex_;  // guards the members below
  std::condition_variable ended_;
  std::map<size_t, size_t> readers_;  // by file
  size_t most_ = SIZE_MAX;
};

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_READ_TURNS_H_
