// What is said of the memory of a plan's segments, against what it allocates. Counts by an operator
// new of its own.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "src/plan/target_plan.h"

namespace {

size_t allocated = 0;

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  allocated += size;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace reshard::target_plan_memory_test {
namespace {

TargetPlan PlanOf(size_t contents, size_t copies) {
  TargetPlan plan;
  plan.path = "rank_12345/a_prefix_that_is_too_long_for_a_string_12345.ckpt";
  for (size_t i = 0; i < contents; ++i) {
    plan.segments.emplace_back(Literal{0, std::string(60, 'h')});
    Content content;
    content.source_name = content.target_name =
        plan.names.Keep("model.layers.100.attention.wq.weight");
    std::vector<PlacedBox> shards;
    for (size_t c = 0; c < copies; ++c) {
      content.copies.push_back({0, c, c, 32768, {{16, 32768, 65536}}});
      shards.push_back({Box::Whole({16, 16384}), 0});
    }
    content.geometry = {{16384, 16384}, Box::Whole({1024, 16384}), shards};
    plan.segments.emplace_back(std::move(content));
  }
  return plan;
}

size_t MemoryBytes(const std::vector<Segment>& segments) {
  size_t bytes = 0;
  for (const Segment& segment : segments) bytes += reshard::MemoryBytes(segment);
  return bytes;
}

TEST(TargetPlanMemoryTest, IsWhatItAllocates) {
  for (const auto& [contents, copies] : {std::pair<size_t, size_t>{0, 0}, {400, 1}, {400, 64}}) {
    const TargetPlan plan = PlanOf(contents, copies);
    const size_t before = allocated;
    const std::vector<Segment> copy = plan.segments;  // without the spare room of what grew
    const size_t bytes = allocated - before;
    // Beside what is asked for, the allocator takes 16 bytes at most for each of some small pieces.
    EXPECT_GE(MemoryBytes(copy), bytes);
    EXPECT_LE(MemoryBytes(copy), bytes * 3 / 2);
    EXPECT_GE(MemoryBytes(plan.segments), MemoryBytes(copy));
  }
}

}  // namespace
}  // namespace reshard::target_plan_memory_test
