// Threads: joined, on small stacks. Tasks: each once, the first failure wins, a stop ends them.
#include "src/os/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <new>
#include <vector>

namespace reshard::threads_test {
namespace {

using testing::ExitedWithCode;

TEST(Thread, JoinsWhenItDies) {
  std::atomic<int> ran = 0;
  {
    std::vector<Thread> threads;
    for (int i = 0; i < 8; ++i) {
      auto thread = Thread::Start([&ran] { ++ran; });
      ASSERT_TRUE(thread.ok()) << thread.status().message();
      threads.push_back(std::move(*thread));
    }
    threads[0].Join();
    threads[0].Join();
    threads[1] = std::move(threads[2]);
  }
  EXPECT_EQ(ran, 8);
}

TEST(Thread, HasASmallStack) {
  size_t size = 0;
  {
    const auto thread = Thread::Start([&size] {
      pthread_attr_t attributes;
      pthread_getattr_np(pthread_self(), &attributes);
      pthread_attr_getstacksize(&attributes, &size);
      pthread_attr_destroy(&attributes);
    });
    ASSERT_TRUE(thread.ok());
  }
  // Sanitizers add to it.
  EXPECT_GE(size, Thread::kStackBytes);
  EXPECT_LE(size, 4 * Thread::kStackBytes);
}

TEST(Thread, SaysThatThereAreTooMany) {
  const auto run = [] {
    // The limit does not hold for root.
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(2);
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0) _exit(3);
    const Status status = Thread::Start([] {}).status();
    fprintf(stderr, "%s\n", status.message().c_str());
    _exit(status.code() == StatusCode::kResourceExhausted ? 0 : 1);
  };
  EXPECT_EXIT(run(), ExitedWithCode(0), "cannot start a thread: .*ulimit -u");
}

TEST(RunWorkers, DoesEveryTaskOnce) {
  for (const size_t workers : {size_t{0}, size_t{1}, size_t{2}, size_t{7}}) {
    for (const size_t tasks : {size_t{0}, size_t{1}, size_t{3}, size_t{500}}) {
      std::vector<std::atomic<int>> done(tasks);
      const Status status = RunWorkers(workers, tasks,
                                       [&](size_t task, const std::stop_token&) {
                                         ++done[task];
                                         return Status();
                                       },
                                       {});
      EXPECT_TRUE(status.ok());
      for (const auto& count : done) EXPECT_EQ(count, 1) << workers << " for " << tasks;
    }
  }
}

TEST(RunWorkers, RunsTasksAtTheSameTime) {
  std::latch all(3);
  const Status status = RunWorkers(3, 3,
                                   [&](size_t, const std::stop_token&) {
                                     all.arrive_and_wait();
                                     return Status();
                                   },
                                   {});
  EXPECT_TRUE(status.ok());
}

TEST(RunWorkers, EndsWithTheFirstFailure) {
  std::atomic<size_t> begun = 0;
  const Status status = RunWorkers(1, 10,
                                   [&](size_t task, const std::stop_token&) {
                                     ++begun;
                                     return task == 3 ? IoError("the third") : Status();
                                   },
                                   {});
  EXPECT_EQ(status.message(), "the third");
  EXPECT_EQ(begun, 4);
}

TEST(RunWorkers, AsksTheOthersToStopAfterAFailure) {
  std::latch waiting(2);
  const Status status = RunWorkers(2, 100,
                                   [&](size_t task, const std::stop_token& stop) {
                                     if (task == 0) {
                                       waiting.arrive_and_wait();
                                       return IoError("task 0");
                                     }
                                     // Until it is asked to stop.
                                     std::mutex mutex;
                                     std::condition_variable_any stopped;
                                     std::unique_lock lock(mutex);
                                     waiting.count_down();
                                     stopped.wait(lock, stop, [] { return false; });
                                     return CancelledError("stopped");
                                   },
                                   {});
  EXPECT_EQ(status.code(), StatusCode::kIo);
}

// A task of a higher number fails first in time; that of the lowest one counts, with any number of
// workers.
TEST(RunWorkers, ReturnsTheFailureOfTheLowestTask) {
  for (const size_t workers : {size_t{1}, size_t{2}, size_t{4}, size_t{8}}) {
    std::latch begun(static_cast<std::ptrdiff_t>(workers));
    std::latch failed(static_cast<std::ptrdiff_t>(workers - 1));
    const Status status = RunWorkers(workers, 100,
                                     [&](size_t task, const std::stop_token& stop) {
                                       if (task < 3) return Status();
                                       begun.arrive_and_wait();
                                       if (task == 3) {
                                         failed.wait();
                                         return stop.stop_requested() ? CancelledError("stopped")
                                                                      : IoError("the third");
                                       }
                                       failed.count_down();
                                       return IoError("another");
                                     },
                                     {});
    EXPECT_EQ(status.message(), "the third") << workers;
  }
}

TEST(RunWorkers, StopsOnRequest) {
  std::stop_source stop;
  std::atomic<size_t> begun = 0;
  const Status status = RunWorkers(
      2, 1000,
      [&](size_t, const std::stop_token& token) {
        if (++begun == 2) stop.request_stop();
        return token.stop_requested() ? CancelledError("stopped") : Status();
      },
      stop.get_token());
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_LT(begun, 1000u);
}

TEST(RunWorkers, BeginsNothingWhenStopWasRequestedBefore) {
  std::stop_source stop;
  stop.request_stop();
  const auto never = [](size_t, const std::stop_token&) { return InternalError("begun"); };
  EXPECT_EQ(RunWorkers(2, 5, never, stop.get_token()).code(), StatusCode::kCancelled);
  EXPECT_TRUE(RunWorkers(2, 0, never, stop.get_token()).ok());
}

TEST(RunWorkers, TurnsLackOfMemoryIntoAStatus) {
  const Status status = RunWorkers(
      2, 2, [](size_t, const std::stop_token&) -> Status { throw std::bad_alloc(); }, {});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace reshard::threads_test
