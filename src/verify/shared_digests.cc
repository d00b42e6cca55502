#include "src/verify/shared_digests.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <span>
#include <utility>

#include "reshard/byte_range.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/record/part_record.h"

namespace reshard {
namespace {

// Small enough to stay in the first cache of a core between the two digests.
constexpr uint64_t kSliceBytes = uint64_t{32} << 10;

static_assert(kDigestBlockBytes % kWindowBytes == 0, "no window lies in two blocks");

}  // namespace

// A file that threads digest, window by window.
class SharedDigests::Reading {
 public:
  Reading(SourceFiles& files, FileId file, uint64_t size,
          const std::function<void(uint64_t)>& progress)
      : files_(files),
        file_(file),
        size_(size),
        windows_(size / kWindowBytes + (size % kWindowBytes == 0 ? 0 : 1)),
        progress_(progress) {}

  // Windows that no thread has taken.
  uint64_t left() const {
    const std::scoped_lock lock(mutex_);
    return NoneLeft() ? 0 : windows_ - next_;
  }

  // Takes the next window for the calling thread, which has to digest it. Returns no value if all
  // are taken, or if one has failed.
  std::optional<uint64_t> Take() {
    const std::scoped_lock lock(mutex_);
    if (NoneLeft()) return std::nullopt;
    ++threads_;
    return next_++;
  }

  void Digest(uint64_t window) {
    Status status = CatchOutOfMemory([&] { return ReadAndAdd(window); });
    const std::scoped_lock lock(mutex_);
    --threads_;
    if (!status.ok() && window < failed_) {
      failed_ = window;
      failure_ = std::move(status);
    }
    changed_.notify_all();
  }

  // From now on no thread takes a window.
  void Cancel() {
    const std::scoped_lock lock(mutex_);
    if (NoneLeft()) return;
    failed_ = next_;
    failure_ = CancelledError("stopped on request");
  }

  // Waits for all windows that were taken.
  Result<StoredDigests> Finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return threads_ == 0; });
    RESHARD_RETURN_IF_ERROR(std::move(failure_));
    return StoredDigests{whole_.digest.HexDigest(), std::move(blocks_)};
  }

 private:
  // A digest that is extended in file order.
  struct Ordered {
    Xxh3 digest;
    uint64_t next = 0;  // window
  };

  bool NoneLeft() const { return next_ == windows_ || failed_ < windows_; }

  ByteRange RangeOf(uint64_t window) const {
    const uint64_t offset = window * kWindowBytes;
    return {offset, std::min(kWindowBytes, size_ - offset)};
  }

  // Reads a window that was taken, and extends both digests in its turn.
  Status ReadAndAdd(uint64_t number) {
    const ByteRange range = RangeOf(number);
    RESHARD_ASSIGN_OR_RETURN(const Window window, files_.Open(file_, range.offset, range.length));
    const uint64_t ahead = AheadOf(number);
    RESHARD_RETURN_IF_ERROR(
        files_.Prefetch(file_, ahead, files_.BytesToAskAhead(ahead, size_ - ahead)));
    if (IsAlone(number)) {
      RESHARD_RETURN_IF_ERROR(window.Read([&](const std::byte* data) {
        for (uint64_t at = 0; at < range.length; at += kSliceBytes) {
          const std::span slice(data + at, std::min(kSliceBytes, range.length - at));
          whole_.digest.Update(slice);
          block_.digest.Update(slice);
        }
      }));
      Pass(whole_, number);
    } else {
      const auto add = [&](Ordered& digest) -> Status {
        if (!WaitForTurn(digest, number)) return CancelledError("a window before it failed");
        return window.Read([&](const std::byte* data) {
          digest.digest.Update({data, range.length});
        });
      };
      RESHARD_RETURN_IF_ERROR(add(whole_));
      Pass(whole_, number);
      RESHARD_RETURN_IF_ERROR(add(block_));
    }
    if (range.end() % kDigestBlockBytes == 0 || range.end() == size_) {
      blocks_.push_back(block_.digest.HexDigest());
      block_.digest.Reset();
    }
    Pass(block_, number);
    if (progress_) progress_(range.length);
    return {};
  }

  // The begin of the first window that no thread here has taken or is reading ahead.
  uint64_t AheadOf(uint64_t number) const {
    const std::scoped_lock lock(mutex_);
    return std::min(RangeOf(number).offset + threads_ * kWindowBytes, size_);
  }

  // Whether it is this window's turn and only this window is taken. Then both digests are extended
  // together.
  bool IsAlone(uint64_t number) const {
    const std::scoped_lock lock(mutex_);
    return threads_ == 1 && block_.next == number;
  }

  // Returns false when an earlier window has failed.
  bool WaitForTurn(const Ordered& digest, uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return digest.next == number || failed_ < number; });
    return digest.next == number;
  }

  void Pass(Ordered& digest, uint64_t number) {
    const std::scoped_lock lock(mutex_);
    digest.next = number + 1;
    changed_.notify_all();
  }

  SourceFiles& files_;
  const FileId file_;
  const uint64_t size_;
  const uint64_t windows_;
  const std::function<void(uint64_t)>& progress_;

  // The thread whose turn it is owns the digest. `block_` also orders the digests of blocks.
  Ordered whole_;
  Ordered block_;
  std::vector<std::string> blocks_;

  mutable std::mutex mutex_;  // guards the members below, and the turns
  std::condition_variable changed_;
  uint64_t next_ = 0;             // window to take
  size_t threads_ = 0;            // at windows
  uint64_t failed_ = UINT64_MAX;  // the lowest window that did
  Status failure_;
};

SharedDigests::SharedDigests(SourceFiles& files, size_t count,
                             std::function<void(uint64_t)> progress)
    : files_(files), progress_(std::move(progress)), left_(count) {}

SharedDigests::~SharedDigests() { assert(readings_.empty()); }

Result<StoredDigests> SharedDigests::Digest(FileId file, uint64_t size,
                                            const std::stop_token& stop) {
  Reading reading(files_, file, size, progress_);
  std::list<Reading*> place(1, &reading);
  const auto self = place.begin();
  {
    const std::scoped_lock lock(mutex_);
    readings_.splice(readings_.end(), place);
    changed_.notify_all();
  }
  while (true) {
    if (stop.stop_requested()) reading.Cancel();
    const std::optional<uint64_t> window = reading.Take();
    if (!window) break;
    reading.Digest(*window);
  }
  Result<StoredDigests> digests = reading.Finish();
  const std::scoped_lock lock(mutex_);
  place.splice(place.end(), readings_, self);
  return digests;
}

void SharedDigests::FileDone() {
  const std::scoped_lock lock(mutex_);
  --left_;
  changed_.notify_all();
}

void SharedDigests::Help(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    Reading* const reading = FindWork();
    const std::optional<uint64_t> window = reading == nullptr ? std::nullopt : reading->Take();
    if (window) {
      lock.unlock();
      reading->Digest(*window);
      lock.lock();
    } else if (reading == nullptr) {
      if (left_ == 0) return;
      changed_.wait(lock, stop, [this] { return left_ == 0 || FindWork() != nullptr; });
    }
  }
}

SharedDigests::Reading* SharedDigests::FindWork() {
  Reading* most = nullptr;
  uint64_t most_left = 0;
  for (Reading* const reading : readings_) {
    const uint64_t left = reading->left();
    if (left > most_left) {
      most_left = left;
      most = reading;
    }
  }
  return most;
}

}  // namespace reshard
