// How a memory limit is divided: never more than the limit, whatever the lanes, down to the least.
#include "src/api/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "src/exec/part_writer.h"
#include "src/os/memory_usage.h"
#include "src/source/window_cache.h"

namespace reshard {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// The plan of a conversion that uses all it may.
PlanReport LargePlan() {
  PlanReport plan;
  plan.sources.push_back({0, "source", uint64_t{1} << 40});
  plan.targets.push_back({0, "target", uint64_t{1} << 40, 100, 1, {0}});
  plan.largest_plan_bytes = kMiB / 4;
  plan.bytes_written = uint64_t{1} << 40;
  return plan;
}

TEST(MemoryBudget, NeverExceedsTheLimit) {
  for (uint64_t limit = kLeastMemoryLimit; limit <= 4096 * kMiB; limit += limit / 7) {
    for (const size_t lanes : std::initializer_list<size_t>{1, 2, 8, 64, 1000}) {
      const auto budget = DivideMemory(limit, lanes);
      ASSERT_TRUE(budget.ok());
      EXPECT_GE(budget->lanes, 1u);
      EXPECT_LE(budget->lanes, lanes);
      EXPECT_LE(budget->chunk_bytes, kChunkBytes);
      EXPECT_EQ(budget->chunk_bytes % StagedFile::kAlignment, 0u);
      EXPECT_GE(budget->window_bytes, budget->lanes * kWindowBytes);
      EXPECT_LE(budget->write_back_bytes, limit);  // no wrap
      EXPECT_LE(PlannedPeak(*budget, LargePlan(), budget->index_bytes), limit) << limit;
      EXPECT_GE(MaxGroup(*budget, LargePlan()), 1u);
    }
  }
}

TEST(MemoryBudget, TheDefaultHasFullChunksForTwoLanes) {
  const auto budget = DivideMemory(256 * kMiB, 2);
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->lanes, 2u);
  EXPECT_EQ(budget->chunk_bytes, kChunkBytes);
  EXPECT_GT(MaxGroup(*budget, LargePlan()), 32u);
}

TEST(MemoryBudget, TheDefaultIsAQuarterOfSmallHosts) {
  const auto budget = DivideMemory(0, 2);
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->limit, std::max(kLeastMemoryLimit, std::min(256 * kMiB, MemoryOfHost() / 4)));
}

TEST(MemoryBudget, RefusesLessThanWorks) {
  const auto budget = DivideMemory(kLeastMemoryLimit - 1, 1);
  EXPECT_EQ(budget.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(budget.status().message(), testing::HasSubstr("the least that works is 28M"));
}

TEST(MemoryBudget, SaysWhichLimitIsEnoughForALargePlan) {
  for (const uint64_t plan_bytes : {4 * kMiB, 40 * kMiB, 900 * kMiB}) {
    for (const uint64_t index_bytes : {3 * kMiB, 60 * kMiB}) {
      PlanReport plan = LargePlan();
      plan.largest_plan_bytes = plan_bytes;
      const auto small = DivideMemory(kLeastMemoryLimit, 2);
      ASSERT_TRUE(small.ok());
      const Status status = CheckFits(*small, plan, index_bytes);
      ASSERT_EQ(status.code(), StatusCode::kResourceExhausted) << plan_bytes;
      std::smatch found;
      ASSERT_TRUE(std::regex_search(status.message(), found, std::regex("([0-9]+)M is enough")));
      const auto enough = DivideMemory(std::stoull(found[1]) * kMiB, 2);
      ASSERT_TRUE(enough.ok());
      EXPECT_TRUE(CheckFits(*enough, plan, index_bytes).ok()) << status.message();
    }
  }
}

// Without a limit, none is exceeded.
TEST(MemoryBudget, RefusesNoPlanWithoutALimit) {
  PlanReport plan = LargePlan();
  plan.largest_plan_bytes = 900 * kMiB;
  const auto budget = DivideMemory(0, 2);
  ASSERT_TRUE(budget.ok());
  EXPECT_TRUE(CheckFits(*budget, plan, kMiB).ok());
}

}  // namespace
}  // namespace reshard
