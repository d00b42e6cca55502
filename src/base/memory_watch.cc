#include "src/base/memory_watch.h"

#include <atomic>

namespace reshard {

class MemoryWatch::Shared : public std::enable_shared_from_this<Shared> {
 public:
  explicit Shared(MemoryCheck check) : check_(std::move(check)) {}

  // Adds bytes that a thread has taken, and returns the bytes that were taken since the last look.
  uint64_t Tell(uint64_t bytes) {
    return unseen_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  }

  void Look(uint64_t more) {
    unseen_.store(0, std::memory_order_relaxed);
    const Unwatched unwatched;
    Status status = check_(more);
    if (!status.ok()) throw MemoryRefused(std::make_shared<const Status>(std::move(status)));
  }

 private:
  const MemoryCheck check_;
  std::atomic<uint64_t> unseen_ = 0;  // as far as threads have told
};

namespace {

// A thread adds its bytes to the common count in steps of this size.
constexpr uint64_t kStep = uint64_t{32} << 10;
// After so many bytes a thread looks, while 16 may have taken a step each that they did not tell.
constexpr uint64_t kLookEvery = MemoryWatch::kBetweenLooks - 16 * kStep;

struct WatchedThread {
  MemoryWatch::Shared* watch = nullptr;
  uint64_t untold = 0;
  bool unwatched = false;
};

constinit thread_local WatchedThread thread;

}  // namespace

MemoryWatch::MemoryWatch(MemoryCheck check)
    : shared_(check ? std::make_shared<Shared>(std::move(check)) : nullptr), outer_(thread.watch) {
  if (shared_) thread.watch = shared_.get();
}

MemoryWatch::~MemoryWatch() { thread.watch = outer_; }

std::shared_ptr<MemoryWatch::Shared> MemoryWatch::current() {
  return thread.watch == nullptr ? nullptr : thread.watch->shared_from_this();
}

bool MemoryWatch::IsWatched() { return thread.watch != nullptr; }

void MemoryWatch::Enter(Shared* watch) { thread.watch = watch; }

void MemoryWatch::BeforeTaking(uint64_t bytes, uint64_t uncounted) {
  if (thread.watch == nullptr || thread.unwatched) return;
  thread.untold += bytes;
  if (thread.untold < kStep) return;
  const uint64_t unseen = thread.watch->Tell(std::exchange(thread.untold, 0));
  const bool is_large = bytes >= kLargeBlock;
  if (unseen < kLookEvery && !is_large) return;
  thread.watch->Look(is_large ? uncounted : 0);
}

MemoryWatch::Unwatched::Unwatched() : before_(std::exchange(thread.unwatched, true)) {}

MemoryWatch::Unwatched::~Unwatched() { thread.unwatched = before_; }

}  // namespace reshard
