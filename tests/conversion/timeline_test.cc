// What a conversion records of itself: bounded, in order, and only when it is asked to.

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "reshard/convert.h"
#include "src/convert/timeline_recorder.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/test_tensor.h"

namespace reshard::timeline_test {
namespace {

using testing::Contains;
using testing::Field;
using testing::Gt;

TEST(TimelineRecorderTest, ALongRunHasNoMoreSamplesThanTheMost) {
  TimelineRecorder recorder(true);
  recorder.Begin("write");
  constexpr uint64_t kChunks = 3'000'000;
  for (uint64_t i = 0; i < kChunks; ++i) {
    recorder.AddWritten(2, 2 * i + 2, i, 7);
  }
  recorder.Mark(7);
  const auto timeline = recorder.Finish();
  ASSERT_TRUE(timeline);
  EXPECT_LE(timeline->samples.size(), kMostTimelineSamples);
  EXPECT_GE(timeline->samples.size(), 2U);
  EXPECT_EQ(timeline->samples.back().bytes_written, 2 * kChunks);
  EXPECT_EQ(timeline->samples.back().bytes_gathered, 2 * kChunks);
  EXPECT_TRUE(std::is_sorted(
      timeline->samples.begin(), timeline->samples.end(),
      [](const ConvertReport::Timeline::Sample& a, const ConvertReport::Timeline::Sample& b) {
        return a.seconds < b.seconds;
      }));
}

TEST(TimelineRecorderTest, NothingIsRecordedUnasked) {
  TimelineRecorder recorder(false);
  recorder.Begin("plan");
  recorder.AddWritten(1, 1, 1, 1);
  recorder.Mark(1);
  EXPECT_FALSE(recorder.Finish());
}

TEST(TimelineRecorderTest, MarksAreSamplesHoweverShortTheRun) {
  TimelineRecorder recorder(true);
  recorder.Begin("write");
  recorder.Mark(5);
  recorder.AddWritten(2, 3, 4, 6);  // within a millisecond, or not
  recorder.Mark(7);
  recorder.Begin("publish");
  recorder.Mark(8);
  const auto timeline = recorder.Finish();
  ASSERT_TRUE(timeline);
  const std::vector<ConvertReport::Timeline::Sample>& samples = timeline->samples;
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[0].bytes_written, 0U);
  EXPECT_EQ(samples[0].memory, 5U);
  EXPECT_EQ(samples[1].memory, 6U);
  for (size_t i = 1; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].bytes_written, 2U);
    EXPECT_EQ(samples[i].bytes_gathered, 3U);
    EXPECT_EQ(samples[i].bytes_read, 4U);
  }
  EXPECT_EQ(samples[3].memory, 8U);
}

TEST(TimelineTest, OfAConversionEndsWithItsSums) {
  const std::vector<NamedLayout> source = {{"w", MakeLayout({4}, {{0, -1}})}};
  ConversionFolder folder(source, {{"w", MakeLayout({3}, {{-1, 0}})}});
  folder.WriteStage({MakeTensor("w", DType::kFloat32, {1024, 768})}, source, 4);
  const auto without = Convert(folder.options());
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_FALSE(without->timeline);

  folder.options().record_timeline = true;
  folder.options().force = true;
  const auto report = Convert(folder.options());
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_TRUE(report->timeline);
  const ConvertReport::Timeline& timeline = *report->timeline;
  std::vector<std::string> phases;
  double end = 0;
  for (const ConvertReport::Timeline::Phase& phase : timeline.phases) {
    phases.push_back(phase.name);
    EXPECT_EQ(phase.begin_seconds, end);
    end = phase.end_seconds;
  }
  EXPECT_THAT(phases, testing::ElementsAre("plan", "check", "write", "publish"));
  ASSERT_GE(timeline.samples.size(), 4U);  // at the begin of three phases, and at the end
  EXPECT_EQ(timeline.samples.front().bytes_written, 0U);
  const ConvertReport::Timeline::Sample& last = timeline.samples.back();
  EXPECT_EQ(last.bytes_written, report->bytes_written);
  EXPECT_EQ(last.bytes_gathered, report->bytes_written);
  EXPECT_GE(last.bytes_read, report->bytes_read);  // whole granules
  // At the end windows were given back; under sanitizers nothing else is counted.
  EXPECT_THAT(timeline.samples, Contains(Field(&ConvertReport::Timeline::Sample::memory, Gt(0U))));
  EXPECT_LE(last.seconds, end);
}

}  // namespace
}  // namespace reshard::timeline_test
