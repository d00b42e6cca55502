// Memory that is refused while it is being taken, by the `operator new` that programs link.
#include "src/base/memory_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <vector>

#include "src/base/out_of_memory.h"
#include "src/os/memory_usage.h"
#include "src/os/threads.h"

namespace reshard::memory_watch_test {
namespace {

constexpr uint64_t kMebi = uint64_t{1} << 20;

// Fails beyond so many bytes above those that are held now.
MemoryCheck Within(uint64_t bytes) {
  return [limit = AnonymousMemory() + bytes](uint64_t more) -> Status {
    if (AnonymousMemory() + more + MemoryWatch::kBetweenLooks <= limit) return {};
    return ResourceExhaustedError("the limit of this test");
  };
}

// Takes `bytes` in blocks of `block`, and keeps them.
Status Take(uint64_t bytes, uint64_t block) {
  return CatchOutOfMemory([&]() -> Status {
    std::vector<std::unique_ptr<char[]>> kept;
    for (uint64_t taken = 0; taken < bytes; taken += block) {
      kept.push_back(std::make_unique<char[]>(block));
    }
    return {};
  });
}

TEST(MemoryWatchTest, RefusesBeforeMoreIsHeld) {
  for (const uint64_t block : {uint64_t{100}, uint64_t{5'000}, kMebi, 12 * kMebi}) {
    SCOPED_TRACE(block);
    ReturnFreeMemory();
    const uint64_t before = AnonymousMemory();
    std::atomic<uint64_t> most = 0;
    const MemoryCheck check = Within(16 * kMebi);
    const MemoryWatch watch([&](uint64_t more) {
      most = std::max<uint64_t>(most, AnonymousMemory());
      return check(more);
    });
    EXPECT_TRUE(Take(12 * kMebi, block).ok());
    EXPECT_EQ(Take(24 * kMebi, block).message(), "the limit of this test");
    EXPECT_GT(most, before + 8 * kMebi);
    EXPECT_LE(most, before + 16 * kMebi);
  }
}

// Each question costs some microseconds, and a checkpoint may have a million small items.
TEST(MemoryCheckTest, FewBytesAreLeftToTheWatch) {
  std::vector<uint64_t> asked;
  const MemoryCheck check = [&](uint64_t more) -> Status {
    asked.push_back(more);
    return {};
  };
  for (const uint64_t more : {uint64_t{1}, kFewBytes - 1, kFewBytes, uint64_t{0}}) {
    EXPECT_TRUE(CheckMemory(check, more).ok());
  }
  EXPECT_EQ(asked, (std::vector<uint64_t>{kFewBytes, 0}));
}

// A block that is reserved counts, although nobody wrote into it.
TEST(MemoryWatchTest, CountsWhatIsReserved) {
  const MemoryWatch watch(Within(16 * kMebi));
  std::vector<std::vector<char>> reserved(8);
  const Status status = CatchOutOfMemory([&]() -> Status {
    for (std::vector<char>& block : reserved) block.reserve(4 * kMebi);
    return {};
  });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
}

TEST(MemoryWatchTest, WatchesThreadsThatWatchedOnesStart) {
  const MemoryWatch watch(Within(16 * kMebi));
  Status status;
  Result<Thread> thread = Thread::Start([&status] { status = Take(24 * kMebi, 1000); });
  ASSERT_TRUE(thread.ok());
  thread->Join();
  EXPECT_EQ(status.message(), "the limit of this test");
}

TEST(MemoryWatchTest, WatchesAThreadThatOutlivesIt) {
  std::latch ended(1);
  Status status;
  std::optional<MemoryWatch> watch(Within(16 * kMebi));
  Result<Thread> thread = Thread::Start([&] {
    ended.wait();
    status = Take(24 * kMebi, 1000);
  });
  ASSERT_TRUE(thread.ok());
  watch.reset();
  ended.count_down();
  thread->Join();
  EXPECT_EQ(status.message(), "the limit of this test");
  EXPECT_TRUE(Take(24 * kMebi, 1000).ok());
}

TEST(MemoryWatchTest, WatchesNobodyElse) {
  {
    const MemoryWatch watch([](uint64_t) { return ResourceExhaustedError("all is refused"); });
    EXPECT_EQ(Take(2 * kMebi, 1000).message(), "all is refused");
    const MemoryWatch::Unwatched unwatched;
    EXPECT_TRUE(Take(2 * kMebi, 1000).ok());
  }
  EXPECT_TRUE(Take(2 * kMebi, 1000).ok());
  const MemoryWatch none{MemoryCheck()};
  EXPECT_EQ(MemoryWatch::current(), nullptr);
}

}  // namespace
}  // namespace reshard::memory_watch_test
