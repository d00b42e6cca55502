#include "src/os/worker_pool.h"

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/out_of_memory.h"
#include "src/os/thread.h"

namespace reshard {
namespace {

// The tasks of one RunWorkers, handed out to its threads.
class TaskList {
 public:
  TaskList(size_t tasks, const Task& task) : tasks_(tasks), task_(task) {}

  void Stop() { stop_.request_stop(); }

  // Does tasks until there are none to begin.
  void Work() {
    while (const std::optional<size_t> task = Begin()) {
      Status status = CatchOutOfMemory([&] { return task_(*task, stop_.get_token()); });
      if (!status.ok()) {
        Record(std::move(status));
        Stop();
      }
    }
  }

  // Only when nobody works any more.
  Status TakeFailure() { return std::move(failure_); }

 private:
  std::optional<size_t> Begin() {
    const std::scoped_lock lock(mutex_);
    if (next_ == tasks_) return std::nullopt;
    if (!stop_.stop_requested()) return next_++;
    if (failure_.ok()) failure_ = std::move(cancelled_);
    return std::nullopt;
  }

  void Record(Status status) {
    const std::scoped_lock lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
  }

  const size_t tasks_;
  const Task& task_;
  std::stop_source stop_;
  std::mutex mutex_;  // guards what follows
  size_t next_ = 0;
  Status failure_;
  // Made before any thread is: making it could fail for want of memory, and no exception may leave
  // a thread.
  Status cancelled_ = CancelledError("stopped on request");
};

}  // namespace

Status RunWorkers(size_t workers, size_t tasks, const Task& task, const std::stop_token& stop) {
  TaskList list(tasks, task);
  const std::stop_callback pass_on(stop, [&list] { list.Stop(); });
  std::vector<Thread> threads;
  for (size_t i = 1; i < workers && i < tasks; ++i) {
    auto thread = Thread::Start([&list] { list.Work(); });
    if (!thread.ok()) break;  // those there are do the same work
    threads.push_back(std::move(*thread));
  }
  list.Work();
  for (Thread& thread : threads) thread.Join();
  return list.TakeFailure();
}

}  // namespace reshard
