// The record of a run's progress: always as long, and read back only if it is whole.
#include "src/job/progress_record.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace reshard::progress_record_test {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST(ProgressRecordTest, ComesBackAsItWas) {
  const ProgressRecord records[] = {
      {},
      {Progress::Phase::kWrite, 5, 3, 10, 1, 2, 1500},
      {Progress::Phase::kPublish, kMost, kMost, kMost, kMost, kMost, kMost},
  };
  for (const ProgressRecord& record : records) {
    const std::string text = EncodeProgress(record);
    // It is written over another one.
    EXPECT_EQ(text.size(), EncodeProgress({}).size());
    EXPECT_LE(text.size(), kMaxProgressBytes);
    const auto parsed = ParseProgress(text, "path");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(*parsed, record);
  }
}

TEST(ProgressRecordTest, RefusesHalfARecord) {
  const std::string text = EncodeProgress({Progress::Phase::kWrite, 5, 3, 10, 1, 2, 1500});
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(ParseProgress(text.substr(0, size), "path").status().code(), StatusCode::kCorrupt)
        << size;
  }
  EXPECT_EQ(ParseProgress(std::string(text.size(), 0), "path").status().code(),
            StatusCode::kCorrupt);
}

}  // namespace
}  // namespace reshard::progress_record_test
