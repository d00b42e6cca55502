#include "src/base/memory_watch.h"

namespace reshard {
namespace {

// A thread adds its bytes to the common count in steps of this size.
constexpr uint64_t kStep = uint64_t{32} << 10;
// After so many bytes a thread looks, while 16 may have taken a step each that they did not tell.
constexpr uint64_t kLookEvery = MemoryWatch::kBetweenLooks - 16 * kStep;

struct WatchedThread {
  MemoryWatch* watch = nullptr;
  uint64_t untold = 0;
  bool unwatched = false;
};

constinit thread_local WatchedThread thread;

}  // namespace

MemoryWatch::MemoryWatch(MemoryCheck check) : check_(std::move(check)), outer_(thread.watch) {
  if (check_) thread.watch = this;
}

MemoryWatch::~MemoryWatch() { thread.watch = outer_; }

MemoryWatch* MemoryWatch::current() { return thread.watch; }

void MemoryWatch::Enter(MemoryWatch* watch) { thread.watch = watch; }

void MemoryWatch::BeforeTaking(uint64_t bytes, uint64_t uncounted) {
  if (thread.watch == nullptr || thread.unwatched) return;
  thread.untold += bytes;
  if (thread.untold < kStep) return;
  const uint64_t told = std::exchange(thread.untold, 0);
  MemoryWatch& watch = *thread.watch;
  const uint64_t unseen = watch.unseen_.fetch_add(told, std::memory_order_relaxed) + told;
  const bool is_large = bytes >= kLargeBlock;
  if (unseen < kLookEvery && !is_large) return;
  watch.unseen_.store(0, std::memory_order_relaxed);
  watch.Look(is_large ? uncounted : 0);
}

void MemoryWatch::Look(uint64_t more) const {
  const Unwatched unwatched;
  Status status = check_(more);
  if (!status.ok()) throw MemoryRefused(std::make_shared<const Status>(std::move(status)));
}

MemoryWatch::Unwatched::Unwatched() : before_(std::exchange(thread.unwatched, true)) {}

MemoryWatch::Unwatched::~Unwatched() { thread.unwatched = before_; }

}  // namespace reshard
