// MemoryWatch: checks the limit while `new` takes memory.
//
// In programs that link watched_new.cc, its `operator new` calls the check. So other code need not
// know how much memory it takes. At most kBetweenLooks bytes are taken between two checks, and a
// large block is checked before it is taken.
#ifndef RESHARD_SRC_BASE_MEMORY_WATCH_H_
#define RESHARD_SRC_BASE_MEMORY_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Thrown instead of taking memory; CatchOutOfMemory turns it into the Status.
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
  static constexpr uint64_t kLargeBlock = kFewBytes;

  // A check, and the count of bytes since its last call. Watched threads share it.
  class Shared;

  // Watches this thread until it is destroyed, and the threads that watched threads start as long
  // as these run. If `check` fails, `new` throws MemoryRefused. `check` must not take a lock that a
  // thread may hold while it takes memory. An empty `check` means no watch.
  explicit MemoryWatch(MemoryCheck check);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // The watch of this thread, which may be null.
  static std::shared_ptr<Shared> current();
  static bool IsWatched();
  // Has this thread watched by `watch`, which may be null, from now on.
  static void Enter(Shared* watch);

  // Called before this thread takes `bytes` of memory. `uncounted` bytes count in addition to those
  // that `check` sees. Throws MemoryRefused beyond the limit.
  static void BeforeTaking(uint64_t bytes, uint64_t uncounted);

  // While it lives, the memory that this thread takes is not checked.
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
  const std::shared_ptr<Shared> shared_;  // null for an empty check
  Shared* const outer_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_MEMORY_WATCH_H_
