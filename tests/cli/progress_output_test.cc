// How far a call is, in words, at times that the test sets.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "reshard/options.h"
#include "tools/cli/messages.h"

namespace reshard::progress_output_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class ProgressOutputTest : public testing::Test {
 protected:
  // Returns what an update `after` the last one says.
  std::string Say(ProgressOutput& output, std::chrono::milliseconds after, Progress::Phase phase,
                  uint64_t done_bytes, uint64_t done_files = 0) {
    now_ += after;
    testing::internal::CaptureStderr();
    output.Update({done_bytes, phase == Progress::Phase::kPlan ? 0 : 100 * kMiB, phase, done_files,
                   phase == Progress::Phase::kPlan ? 0U : 4U});
    return testing::internal::GetCapturedStderr();
  }
  ProgressOutput::Clock::time_point now_;
};

TEST_F(ProgressOutputTest, ALogGetsALineEvery30Seconds) {
  ProgressOutput output(ProgressStyle::kLog, [this] { return now_; });
  EXPECT_EQ(Say(output, std::chrono::seconds(0), Progress::Phase::kPlan, 0), "");
  EXPECT_EQ(Say(output, std::chrono::seconds(10), Progress::Phase::kWrite, 0), "");
  EXPECT_EQ(Say(output, std::chrono::seconds(19), Progress::Phase::kWrite, kMiB), "");
  // The 10 s of planning do not count.
  EXPECT_EQ(Say(output, std::chrono::seconds(1), Progress::Phase::kWrite, 20 * kMiB, 1),
            "reshard: write 20%, 20.0 MiB of 100.0 MiB, 1 of 4 files, 1.0 MiB/s, 1:20 left\n");
  EXPECT_EQ(Say(output, std::chrono::seconds(29), Progress::Phase::kWrite, 99 * kMiB, 3), "");
  EXPECT_EQ(Say(output, std::chrono::seconds(1), Progress::Phase::kPublish, 100 * kMiB, 4),
            "reshard: publish 100%, 100.0 MiB of 100.0 MiB, 4 of 4 files\n");
}

TEST_F(ProgressOutputTest, ALineBeginsAPhaseAtOnceAndIsGoneInTheEnd) {
  testing::internal::CaptureStderr();
  {
    ProgressOutput output(ProgressStyle::kLine, [this] { return now_; });
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(Say(output, std::chrono::seconds(0), Progress::Phase::kPlan, 0),
              "\rreshard: plan\x1b[K");
    EXPECT_EQ(Say(output, std::chrono::seconds(0), Progress::Phase::kCheck, 0),
              "\rreshard: check 0%, 0 B of 100.0 MiB, 0 of 4 files\x1b[K");
    EXPECT_EQ(Say(output, std::chrono::milliseconds(99), Progress::Phase::kCheck, kMiB), "");
    EXPECT_NE(Say(output, std::chrono::milliseconds(1), Progress::Phase::kCheck, kMiB), "");
    testing::internal::CaptureStderr();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "\r\x1b[K");
}

}  // namespace
}  // namespace reshard::progress_output_test
