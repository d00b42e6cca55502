// MemoryWatch: asks, while memory is being taken by `new`, whether that may go on.
//
// The `operator new` of watched_new.cc asks, in the programs that link it. So no code has to know
// that it takes much: between two looks at most kBetweenLooks are taken, and a large block is
// looked at before it is taken.
#ifndef RESHARD_SRC_BASE_MEMORY_WATCH_H_
#define RESHARD_SRC_BASE_MEMORY_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Thrown in place of taking memory; CatchOutOfMemory makes the Status of it.
class MemoryRefused : public std::bad_alloc {
 public:
  explicit MemoryRefused(std::shared_ptr<const Status> status) : status_(std::move(status)) {}
  const Status& status() const { return *status_; }

 private:
  std::shared_ptr<const Status> status_;
};

class MemoryWatch {
 public:
  // The most bytes that all threads together take by `new` between two looks, for as many threads
  // as a conversion has.
  static constexpr uint64_t kBetweenLooks = uint64_t{1} << 20;
  // Blocks of at least as much are made present at once, so that the next look sees them.
  static constexpr uint64_t kLargeBlock = uint64_t{64} << 10;

  // Watches this thread, and the threads that are started by watched ones, until it is destroyed.
  // They end before. Where `check` fails, `new` throws MemoryRefused. `check` takes no lock that
  // somebody may hold who takes memory. An empty one watches nothing.
  explicit MemoryWatch(MemoryCheck check);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // The watch of this thread, which may be null.
  static MemoryWatch* current();
  // Has this thread watched by `watch`, which may be null, from now on.
  static void Enter(MemoryWatch* watch);

  // Called before this thread takes `bytes` of memory, of which `uncounted` are to be counted
  // besides what `check` sees. Throws MemoryRefused if they may not be taken.
  static void BeforeTaking(uint64_t bytes, uint64_t uncounted);

  // While it lives, what this thread takes is not looked at.
  class Unwatched {
   public:
    Unwatched();
    ~Unwatched();
    Unwatched(const Unwatched&) = delete;
    Unwatched& operator=(const Unwatched&) = delete;

   private:
    const bool before_;
  };

 private:
  void Look(uint64_t more) const;

  const MemoryCheck check_;
  MemoryWatch* const outer_;
  std::atomic<uint64_t> unseen_ = 0;  // taken since the last look, as far as threads have told
};

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_MEMORY_WATCH_H_
