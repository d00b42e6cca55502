// What a process takes of the memory. Not under sanitizers, whose own memory counts too.
#include "src/os/memory_usage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace reshard::memory_usage_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(MemoryUsage, SeesAnonymousMemory) {
  MemoryMeter peak;
  peak.Look();
  const uint64_t before = peak.anonymous_peak();
  EXPECT_GT(before, 0u);
  {
    const std::vector<char> touched(64 * kMiB, 'x');
    peak.Look();
  }
  const uint64_t with = peak.anonymous_peak();
  EXPECT_GE(with, before + 60 * kMiB);
  peak.Look();
  EXPECT_EQ(peak.anonymous_peak(), with);
}

}  // namespace
}  // namespace reshard::memory_usage_test
