// Thread: a thread that is joined when its object dies, on a small stack.
//
// Stacks count against RLIMIT_DATA, and std::jthread would take the 8 MiB of `ulimit -s`.
// Move-only; an object is used by one thread at a time.
#ifndef RESHARD_SRC_OS_THREAD_H_
#define RESHARD_SRC_OS_THREAD_H_

#include <pthread.h>

#include <functional>
#include <optional>
#include <utility>

#include "reshard/status.h"

namespace reshard {

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

  // Waits until `body` has returned. Does nothing the second time.
  void Join();

 private:
  explicit Thread(pthread_t handle) : handle_(handle) {}

  std::optional<pthread_t> handle_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_THREAD_H_
