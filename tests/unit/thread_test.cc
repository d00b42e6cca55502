// Threads: they run, they are joined, their stacks are small.
#include "src/os/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <vector>

namespace reshard {
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

}  // namespace
}  // namespace reshard
