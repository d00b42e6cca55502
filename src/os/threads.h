// Threads that are always joined, and tasks that they share out.
#ifndef RESHARD_SRC_OS_THREADS_H_
#define RESHARD_SRC_OS_THREADS_H_

#include <pthread.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "reshard/status.h"

namespace reshard {

// Thread: a thread that is joined when its object dies, on a small stack.
//
// Stacks count against RLIMIT_DATA, and std::jthread would take the 8 MiB of `ulimit -s`.
// Move-only; an object is used by one thread at a time.
class Thread {
 public:
  // The stack of each, in bytes.
  static constexpr size_t kStackBytes = size_t{256} << 10;

  // Starts a thread that calls `body`, which must not throw.
  // Errors: kResourceExhausted.
  static Result<Thread> Start(std::function<void()> body);

  Thread(Thread&& other) noexcept : handle_(std::exchange(other.handle_, std::nullopt)) {}
  Thread& operator=(Thread&& other) noexcept {
    Join();
    handle_ = std::exchange(other.handle_, std::nullopt);
    return *this;
  }
  ~Thread() { Join(); }

  // Waits until `body` has returned. The second call has no effect.
  void Join();

 private:
  explicit Thread(pthread_t handle) : handle_(handle) {}

  std::optional<pthread_t> handle_;
};

// Does task number `task`; gives up with kCancelled soon after `stop` is requested.
using Task = std::function<Status(size_t task, const std::stop_token& stop)>;

// Does the tasks 0 to `tasks` - 1 on at most `workers` threads, with the calling thread. Each takes
// the next task that was not begun. A failed task asks tasks of higher numbers to stop; a request
// of `stop` asks all. Both keep further tasks from being begun. Tasks of lower numbers go on, so
// the returned failure is the one of the lowest task, for any number of threads. Joins every thread
// before it returns. Errors: the tasks'; kCancelled if `stop` kept tasks from being begun.
Status RunWorkers(size_t workers, size_t tasks, const Task& task, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_THREADS_H_
