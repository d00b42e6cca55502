// What a run is about to do, written down and read again.
#include "src/exec/job_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reshard {
namespace {

using testing::HasSubstr;

JobText TextOf(const std::vector<std::string>& sources) {
  JobSpec spec;
  spec.files = {{"rank_0/a.ckpt", 4}, {"rank_1/a.ckpt", 5}};
  spec.source_identities = sources;
  return JobTextOf(spec);
}

TEST(JobText, ComesBackAsItWas) {
  for (const JobText& job : {TextOf({"one", "two"}), TextOf({}), JobTextOf({})}) {
    const auto parsed = ParseJobText(EncodeJobText(job), "job");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(*parsed, job);
  }
}

TEST(JobText, CutShortItIsNoneOrAnother) {
  const JobText job = TextOf({"one", "two"});
  const std::string text = EncodeJobText(job);
  for (size_t size = 0; size < text.size(); ++size) {
    const auto parsed = ParseJobText(text.substr(0, size), "job");
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.status().code(), StatusCode::kCorrupt);
      continue;
    }
    EXPECT_EQ(text[size - 1], '\n') << size;
    EXPECT_EQ(CheckSameJob(*parsed, job, "job").code(), StatusCode::kChanged) << size;
  }
}

TEST(JobText, SaysWhatAnotherRunWasAbout) {
  JobText other = TextOf({"one", "tw\x1bo"});
  EXPECT_THAT(CheckSameJob(other, TextOf({"one"}), "job").message(),
              HasSubstr("then: source tw\\x1bo, now: none"));
  other.tool_version = "0\x1b[1m";
  EXPECT_THAT(CheckSameJob(other, TextOf({"one"}), "job").message(),
              HasSubstr("begun by reshard 0\\x1b[1m, this is"));
}

}  // namespace
}  // namespace reshard
