#include "src/os/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/memory_watch.h"
#include "src/base/out_of_memory.h"
#include "src/os/retries.h"
#include "src/os/used_files.h"

namespace reshard {
namespace {

// The work of a thread, with the list of files, the retries and the watch of the starting thread.
struct Body {
  std::function<void()> work;
  std::shared_ptr<UsedFiles> files;
  std::shared_ptr<Retries> retries;
  std::shared_ptr<MemoryWatch::Shared> watch;
};

extern "C" void* RunThreadBody(void* argument) {
  const std::unique_ptr<Body> body(static_cast<Body*>(argument));
  MemoryWatch::Enter(body->watch.get());
  SetUsedFiles(body->files.get());
  const RetryScope scope(body->retries);
  body->work();
  MemoryWatch::Enter(nullptr);
  return nullptr;
}

// The tasks of a RunWorkers, handed out to its threads.
class TaskList {
 public:
  TaskList(size_t workers, size_t tasks, const Task& task)
      : tasks_(tasks), task_(task), workers_(workers) {}

  void Stop() { Stop(0); }

  // Does tasks until there are none to begin, as worker number `number`.
  void Work(size_t number) {
    Worker& worker = workers_[number];
    while (Begin(worker)) {
      Status status = CatchOutOfMemory([&] { return task_(worker.task, worker.stop.get_token()); });
      if (!status.ok()) Fail(worker.task, std::move(status));
    }
  }

  // Only after all threads have ended.
  Status TakeFailure() { return std::move(failure_); }

 private:
  struct Worker {
    size_t task = 0;
    std::stop_source stop;  // once only: then there are no more tasks to begin
  };

  bool Begin(Worker& worker) {
    const std::scoped_lock lock(mutex_);
    if (next_ == tasks_) return false;
    if (!stopped_) {
      worker.task = next_++;
      return true;
    }
    if (failure_.ok()) failure_ = std::move(cancelled_);
    return false;
  }

  void Fail(size_t task, Status status) {
    {
      const std::scoped_lock lock(mutex_);
      if (failure_.ok() || task < failed_) {
        failed_ = task;
        failure_ = std::move(status);
      }
    }
    Stop(task);
  }

  // Asks those at tasks from `first` on to stop.
  void Stop(size_t first) {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    for (Worker& worker : workers_) {
      if (worker.task >= first) worker.stop.request_stop();
    }
  }

  const size_t tasks_;
  const Task& task_;
  std::mutex mutex_;  // guards the members below
  std::vector<Worker> workers_;
  size_t next_ = 0;
  bool stopped_ = false;
  size_t failed_ = 0;
  Status failure_;
  // Made before the threads, because making it could fail for lack of memory, and no exception may
  // leave a thread.
  Status cancelled_ = CancelledError("stopped on request");
};

}  // namespace

Result<Thread> Thread::Start(std::function<void()> body) {
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    std::unique_ptr<Body> argument(
        new Body{std::move(body), CurrentUsedFiles(), CurrentRetries(), MemoryWatch::current()});
    pthread_t handle{};
    error = pthread_attr_setstacksize(&attributes, kStackBytes);
    if (error == 0) error = pthread_create(&handle, &attributes, RunThreadBody, argument.get());
    pthread_attr_destroy(&attributes);
    if (error == 0) {
      static_cast<void>(argument.release());  // the thread deletes it
      return Thread(handle);
    }
  }
  return ResourceExhaustedError(
      fmt::format("cannot start a thread: {}; use fewer, or raise `ulimit -u` or the memory limit",
                  std::generic_category().message(error)));
}

void Thread::Join() {
  if (const std::optional<pthread_t> handle = std::exchange(handle_, std::nullopt)) {
    pthread_join(*handle, nullptr);
  }
}

Status RunWorkers(size_t workers, size_t tasks, const Task& task, const std::stop_token& stop) {
  TaskList list(std::max<size_t>(std::min(workers, tasks), 1), tasks, task);
  const std::stop_callback pass_on(stop, [&list] { list.Stop(); });
  std::vector<Thread> threads;
  for (size_t i = 1; i < workers && i < tasks; ++i) {
    auto thread = Thread::Start([&list, i] { list.Work(i); });
    if (!thread.ok()) break;  // those there are do the same work
    threads.push_back(std::move(*thread));
  }
  list.Work(0);
  for (Thread& thread : threads) thread.Join();
  return list.TakeFailure();
}

}  // namespace reshard
