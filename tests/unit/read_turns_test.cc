// The files of a view that are read at a time, and their plans.
#include "src/convert/read_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "src/convert/plan_cache.h"

namespace reshard::read_turns_test {
namespace {

TEST(ReadTurnsTest, SoManyFilesAreReadAtATime) {
  constexpr size_t kFiles = 8;
  constexpr size_t kMost = 2;
  ReadTurns turns;
  turns.SetMost(kMost);
  std::atomic<int> readers[kFiles] = {};
  std::atomic<size_t> most = 0;
  std::atomic<size_t> reads = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kFiles; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 300; ++i) {
        const size_t file = (t + i / 7) % kFiles;
        const ReadTurns::Turn turn(turns, file);
        ++readers[file];
        std::this_thread::yield();
        const auto read = static_cast<size_t>(std::ranges::count_if(
            readers, [](const std::atomic<int>& count) { return count > 0; }));
        for (size_t before = most; before < read && !most.compare_exchange_weak(before, read);) {
        }
        --readers[file];
        ++reads;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reads, kFiles * 300);
  EXPECT_EQ(most, kMost);
}

TEST(ReadTurnsTest, AFileMayBeReadByMany) {
  ReadTurns turns;
  turns.SetMost(1);
  const ReadTurns::Turn first(turns, 5);
  const ReadTurns::Turn second(turns, 5);
}

PlanHandle MakePlan() { return std::make_shared<const TargetPlan>(); }

// Files with plans in the cache.
std::set<int64_t> KeptIn(PlanCache& cache) {
  std::set<int64_t> kept;
  for (const int64_t file : {4, 3, 2, 1}) {
    if (cache.Find(file) != nullptr) kept.insert(file);
  }
  return kept;
}

TEST(PlanCacheTest, PlansInUseStay) {
  PlanCache cache;
  cache.SetMost(20);
  const PlanHandle used = MakePlan();
  cache.Add(1, used, 10);
  cache.Add(2, MakePlan(), 10);
  cache.Add(3, MakePlan(), 10);
  EXPECT_EQ(KeptIn(cache), (std::set<int64_t>{1, 3}));
  cache.MakeRoom(10);
  EXPECT_EQ(KeptIn(cache), (std::set<int64_t>{1}));
  EXPECT_EQ(cache.bytes(), 10U);
  // The one that is added stays in any case.
  cache.Add(4, MakePlan(), 100);
  EXPECT_EQ(KeptIn(cache), (std::set<int64_t>{1, 4}));
  cache.MakeRoom(1000);
  EXPECT_EQ(KeptIn(cache), (std::set<int64_t>{1}));
}

}  // namespace
}  // namespace reshard::read_turns_test
