// Conversions under a memory limit, in a process that has much memory already; what is held is
// measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "src/convert/memory_budget.h"
#include "src/os/memory_usage.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::convert_memory_test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMebi = uint64_t{1} << 20;

class ConvertMemoryTest : public testing::Test {
 protected:
  // Makes a file of `count` parameters, to be cut in two.
  ConvertOptions Make(size_t count) {
    std::string bytes;
    std::vector<NamedLayout> layouts;
    for (size_t i = 0; i < count; ++i) {
      const std::string name = "model.layers.feed_forward.experts." + std::to_string(i) + ".weight";
      bytes += TensorValue(name, "Int8", {2, 2}, "abcd");
      layouts.push_back({name, MakeLayout({2}, {{0, -1}})});
    }
    ConvertOptions options;
    options.source.path = folder_.Write("full.ckpt", bytes);
    options.target.strategy = folder_.Write("strategy.ckpt", ProtobufStrategy(0, layouts));
    options.target.folder = (folder_.path() / "out").string();
    return options;
  }

  const TemporaryFolder folder_;
};

TEST_F(ConvertMemoryTest, ChecksWhatIsHeldUntilSomethingIsWritten) {
  constexpr uint64_t kHeld = 40 * kMebi;
  for (const uint64_t limit : {kLeastMemoryLimit, uint64_t{0}}) {
    const auto budget = DivideMemory(limit, 1);
    ASSERT_TRUE(budget.ok());
    const MemoryCheck check = CheckOf(*budget);
    EXPECT_TRUE(check(0).ok());
    EXPECT_EQ(check(2 * kLeastMemoryLimit).ok(), limit == 0);
    const std::vector<char> held(kHeld, 'x');
    const Status status = check(0);
    EXPECT_EQ(status.code(), limit == 0 ? StatusCode::kOk : StatusCode::kResourceExhausted);
    EXPECT_GE(budget->measured->meter.peak(), kHeld);
    budget->measured->refuses = false;
    EXPECT_TRUE(check(0).ok());
  }
}

// What the process had before is not the call's.
TEST_F(ConvertMemoryTest, CountsFromTheCallOn) {
  ConvertOptions options = Make(6'000);
  options.memory_limit = 64 * kMebi;
  const std::vector<char> before(500 * kMebi, 'x');
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GE(report->anonymous_peak, before.size());
  EXPECT_LE(report->memory_planned, options.memory_limit);
  EXPECT_LE(report->memory_peak, options.memory_limit);
  EXPECT_GE(report->memory_peak, 5 * kMebi);
}

TEST_F(ConvertMemoryTest, RefusesBeforeMoreIsTakenAndNothingIsWritten) {
  ConvertOptions options = Make(40'000);
  options.memory_limit = kLeastMemoryLimit;
  const uint64_t before = AnonymousMemory();
  const auto refused = Convert(options);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted) << refused.status().message();
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("28M"));
  EXPECT_LE(AnonymousMemory(), before + 2 * kLeastMemoryLimit);
  EXPECT_FALSE(fs::exists(options.target.folder));
  EXPECT_EQ(Plan(options).status().code(), StatusCode::kResourceExhausted);
}

// Where all could be planned, the message says what is enough.
TEST_F(ConvertMemoryTest, SaysWhatIsEnough) {
  ConvertOptions options = Make(20'000);
  uint64_t enough = 0;
  for (options.memory_limit = kLeastMemoryLimit; enough == 0; options.memory_limit += 2 * kMebi) {
    const auto refused = Convert(options);
    ASSERT_EQ(refused.status().code(), StatusCode::kResourceExhausted) << options.memory_limit;
    EXPECT_FALSE(fs::exists(options.target.folder));
    const std::string message = refused.status().message();
    std::smatch found;
    if (std::regex_search(message, found, std::regex("Raise `memory_limit` to ([0-9]+)M"))) {
      enough = std::stoull(found[1]) * kMebi;
    }
  }
  options.memory_limit = enough;
  const auto plan = Plan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto report = Convert(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_LE(report->memory_peak, enough);
  EXPECT_NEAR(static_cast<double>(plan->memory_bytes), static_cast<double>(report->memory_planned),
              4.0 * kMebi);
}

// For the CRC of a safetensors file its table is read back.
TEST_F(ConvertMemoryTest, CountsTheTableThatACrcTakes) {
  constexpr size_t kCount = 20'000;
  ConvertOptions options = Make(kCount);
  options.target.format = TargetFormat::kSafetensors;
  const auto plain = Plan(options);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  options.target.states_crc = true;
  const auto plan = Plan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_GE(plan->memory_bytes, plain->memory_bytes + kCount * sizeof(StoredArray));
}

}  // namespace
}  // namespace reshard::convert_memory_test
