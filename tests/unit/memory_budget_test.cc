// How a memory limit is divided: never more than the limit, whatever the lanes, down to the least.
#include "src/convert/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "src/io/window_cache.h"
#include "src/os/file_pages.h"
#include "src/os/memory_usage.h"
#include "src/write/part_writer.h"
#include "tests/support/says.h"

namespace reshard::memory_budget_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// The plan of a conversion that uses all it may.
WorkList LargePlan() {
  WorkList plan;
  plan.sources.push_back({0, "source", uint64_t{1} << 40});
  plan.targets.push_back({0, "target", uint64_t{1} << 40, 100, 1, {0}});
  plan.largest_plan_bytes = kMiB / 4;
  plan.bytes_written = uint64_t{1} << 40;
  return plan;
}

TEST(MemoryBudget, NeverExceedsTheLimit) {
  for (uint64_t limit = kLeastMemoryLimit; limit <= 4096 * kMiB; limit += limit / 7) {
    for (const size_t lanes : std::initializer_list<size_t>{1, 2, 8, 64, 1000}) {
      for (const uint64_t held : {2 * kMiB, limit / 2, limit - 12 * kMiB}) {
        const auto first = DivideMemory(limit, lanes);
        ASSERT_TRUE(first.ok());
        EXPECT_GE(first->lanes, 1u);
        EXPECT_LE(first->lanes, lanes);
        EXPECT_GE(first->window_bytes, kWindowBytes);
        const auto budget = DivideRest(*first, LargePlan(), held);
        ASSERT_TRUE(budget.ok()) << budget.status().message();
        EXPECT_GE(budget->lanes, 1u);
        EXPECT_LE(budget->lanes, lanes);
        EXPECT_GE(budget->chunk_bytes, StagedFile::kAlignment);
        EXPECT_LE(budget->chunk_bytes, kChunkBytes);
        EXPECT_EQ(
            budget->chunk_bytes %
                (budget->chunk_bytes < kLargePageBytes ? StagedFile::kAlignment : kLargePageBytes),
            0u);
        EXPECT_GE(budget->window_bytes, budget->lanes * kWindowBytes);
        EXPECT_LE(budget->write_back_bytes, limit);  // no wrap
        EXPECT_LE(budget->planned_peak, limit) << limit << " " << held;
        EXPECT_GE(MaxGroup(*budget, LargePlan()), 1u);
        EXPECT_LE(MaxGroup(*budget, LargePlan()), MostOpen(*budget, LargePlan()));
      }
    }
  }
}

TEST(MemoryBudget, TheDefaultHasFullChunksForTwoLanes) {
  const auto first = DivideMemory(256 * kMiB, 2);
  ASSERT_TRUE(first.ok());
  WorkList plan = LargePlan();
  plan.targets.resize(100, plan.targets[0]);
  const auto budget = DivideRest(*first, plan, 3 * kMiB);
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->lanes, 2u);
  EXPECT_EQ(budget->chunk_bytes, kChunkBytes);
  EXPECT_EQ(budget->window_bytes, 64 * kMiB);
  EXPECT_GT(MaxGroup(*budget, plan), 32u);
}

// What chunks leave, so that they end where large pages do, is for windows.
TEST(MemoryBudget, LimitedMemoryHasChunksOfWholeLargePages) {
  const auto first = DivideMemory(64 * kMiB, 2);
  ASSERT_TRUE(first.ok());
  const auto budget = DivideRest(*first, LargePlan(), 4 * kMiB);
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->lanes, 2u);
  EXPECT_EQ(budget->chunk_bytes, kLargePageBytes);
  EXPECT_GT(budget->window_bytes, 4 * kMiB + 2 * budget->lanes * budget->chunk_bytes);
  EXPECT_GT(budget->planned_peak, budget->limit - 14 * kMiB);  // kernel and slack are left
}

// There is no other one to hold beside it.
TEST(MemoryBudget, OneTargetHasOnePlan) {
  const auto first = DivideMemory(64 * kMiB, 2);
  ASSERT_TRUE(first.ok());
  WorkList plan = LargePlan();
  plan.largest_plan_bytes = 3 * kMiB;
  const auto one = DivideRest(*first, plan, 4 * kMiB);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->plan_bytes, plan.largest_plan_bytes);
  plan.targets.resize(2, plan.targets[0]);
  const auto two = DivideRest(*first, plan, 4 * kMiB);
  ASSERT_TRUE(two.ok());
  EXPECT_GT(two->plan_bytes, plan.largest_plan_bytes);
  EXPECT_GT(one->window_bytes, two->window_bytes);
}

TEST(MemoryBudget, TheDefaultIsAQuarterOfSmallHosts) {
  const auto budget = DivideMemory(0, 2);
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->limit, std::max(kLeastMemoryLimit, std::min(256 * kMiB, MemoryOfHost() / 4)));
}

TEST(MemoryBudget, RefusesLessThanWorks) {
  const auto budget = DivideMemory(kLeastMemoryLimit - 1, 1);
  EXPECT_EQ(budget.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(budget.status().message(), Naming("28M"));
}

TEST(MemoryBudget, SaysWhichLimitIsEnough) {
  for (const uint64_t plan_bytes : {4 * kMiB, 40 * kMiB, 900 * kMiB}) {
    for (const uint64_t held : {3 * kMiB, 26 * kMiB, 600 * kMiB}) {
      for (const size_t ranks : std::initializer_list<size_t>{1, 100'000}) {
        WorkList plan = LargePlan();
        plan.largest_plan_bytes = plan_bytes;
        plan.targets.resize(ranks, plan.targets[0]);
        const auto small = DivideMemory(kLeastMemoryLimit, 2);
        ASSERT_TRUE(small.ok());
        const auto refused = DivideRest(*small, plan, held);
        if (plan_bytes == 4 * kMiB && held == 3 * kMiB && ranks == 1) {
          EXPECT_TRUE(refused.ok()) << refused.status().message();
          continue;
        }
        ASSERT_EQ(refused.status().code(), StatusCode::kResourceExhausted) << plan_bytes;
        const std::string message = refused.status().message();
        std::smatch found;
        ASSERT_TRUE(
            std::regex_search(message, found, std::regex("Raise `memory_limit` to ([0-9]+)M")));
        const auto enough = DivideMemory(std::stoull(found[1]) * kMiB, 2);
        ASSERT_TRUE(enough.ok());
        const auto fits = DivideRest(*enough, plan, held);
        ASSERT_TRUE(fits.ok()) << message;
        EXPECT_LE(fits->planned_peak, enough->limit);
      }
    }
  }
}

// What was read beside dense headers stays for the contents, but not where memory is short.
TEST(MemoryBudget, KeepsPagesOfHeadersByDefault) {
  for (const uint64_t limit : {uint64_t{0}, 256 * kMiB}) {
    const auto first = DivideMemory(limit, 2);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(first->header_bytes > 0, limit == 0);
    EXPECT_LE(first->header_bytes + first->window_bytes + first->index_bytes + first->plan_bytes,
              first->limit);
    for (const uint64_t headers : {uint64_t{0}, kMiB, 1024 * kMiB}) {
      const auto budget = DivideRest(*first, LargePlan(), 12 * kMiB, headers);
      ASSERT_TRUE(budget.ok()) << budget.status().message();
      EXPECT_EQ(budget->limit, first->limit);
      EXPECT_LE(budget->header_bytes, std::min(headers, first->header_bytes));
      EXPECT_EQ(budget->header_bytes > 0, limit == 0 && headers > 0);
      EXPECT_LE(budget->planned_peak, budget->limit);
    }
  }
}

// Files that are open at a time read the sources that they share once: plans of more than usual are
// held where that saves a pass.
TEST(MemoryBudget, FilesThatShareSourcesAreOpenTogether) {
  const auto first = DivideMemory(64 * kMiB, 2);
  ASSERT_TRUE(first.ok());
  // Returns how many files of this plan are open when eight of as many sources each are written.
  const auto together = [&](uint64_t plan, bool share) {
    WorkList work = LargePlan();
    work.targets.clear();
    for (int64_t rank = 0; rank < 8; ++rank) {
      work.targets.push_back(
          {rank, "target", uint64_t{1} << 30, 100, 1, {0, share ? 1 : 2 + rank}});
    }
    work.largest_plan_bytes = plan;
    const auto budget = DivideRest(*first, work, 18 * kMiB);
    EXPECT_TRUE(budget.ok()) << budget.status().message();
    EXPECT_LE(budget->planned_peak, budget->limit);
    EXPECT_GE(budget->window_bytes, kWindowBytes);
    return MaxGroup(*budget, work);
  };
  EXPECT_EQ(together(kMiB, true), 8U);
  EXPECT_LT(together(kMiB, false), 4U);
  // Two passes: no more are held than they take.
  EXPECT_EQ(together(7 * kMiB / 4, true), 4U);
  EXPECT_EQ(together(20 * kMiB, true), 1U);
}

// Eight sources side by side need as many windows, also where memory is short.
TEST(MemoryBudget, PagesThatNoTargetNeedsAreForWindows) {
  for (const uint64_t limit : {kLeastMemoryLimit, 64 * kMiB, 256 * kMiB}) {
    const auto first = DivideMemory(limit, 2);
    ASSERT_TRUE(first.ok());
    const auto budget = DivideRest(*first, LargePlan(), 12 * kMiB);
    ASSERT_TRUE(budget.ok()) << budget.status().message();
    const MemoryBudget direct = PastPageCache(*budget);
    EXPECT_EQ(direct.window_bytes + direct.write_back_bytes,
              budget->window_bytes + budget->write_back_bytes);
    EXPECT_EQ(direct.window_bytes, limit == 256 * kMiB
                                       ? budget->window_bytes  // all that pays
                                       : budget->window_bytes + budget->write_back_bytes / 4 * 3);
  }
}

// Without a limit that was asked for, the run takes what it needs.
TEST(MemoryBudget, RaisesTheDefault) {
  WorkList plan = LargePlan();
  plan.largest_plan_bytes = 900 * kMiB;
  const auto first = DivideMemory(0, 2);
  ASSERT_TRUE(first.ok());
  const auto budget = DivideRest(*first, plan, 30 * kMiB);
  ASSERT_TRUE(budget.ok());
  EXPECT_GT(budget->limit, first->limit);
  EXPECT_LE(budget->planned_peak, budget->limit);
}

}  // namespace
}  // namespace reshard::memory_budget_test
