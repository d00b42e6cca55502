// What a run is about to do, written down and read again.
#include "src/job/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/options.h"
#include "tests/support/says.h"

namespace reshard::job_text_test {
namespace {

using testing::HasSubstr;

JobText TextOf(const std::vector<std::string>& sources) {
  JobSpec spec;
  spec.files = {{"rank_0/a.ckpt", 4}, {"rank_1/a.ckpt", 5}};
  spec.source_identities = sources;
  return JobTextOf(spec);
}

TEST(JobText, ComesBackAsItWas) {
  JobText more = TextOf({"one"});
  more.prune = true;
  JobText most = more;
  most.origin = R"({"tool":"reshard"})";
  JobText stamped = most;
  // A path may have any bytes.
  stamped.stamps = {{"rank_0/a\nb\n\ntarget 1 x", 4, -5, 6}, {"z", UINT64_MAX, INT64_MAX, 0}};
  for (const JobText& job :
       {TextOf({"one", "two"}), TextOf({}), JobTextOf({}), more, most, stamped}) {
    const auto parsed = ParseJobText(EncodeJobText(job), "job");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(*parsed, job);
  }
}

// A run that tells something else of itself, or prunes, may go on with what another one has
// written.
TEST(JobText, OriginPruningAndStampsMakeNoOtherJob) {
  JobText other = TextOf({"one"});
  other.prune = true;
  other.origin = "{}";
  other.stamps = {{"one", 1, 2, 3}};
  EXPECT_TRUE(CheckSameJob(other, TextOf({"one"}), "job", {}).ok());
}

TEST(JobText, CutShortItIsNoneOrAnother) {
  JobText job = TextOf({"one", "two"});
  job.stamps = {{"one", 1, 2, 3}, {"two", 1, 2, 4}};
  const std::string text = EncodeJobText(job);
  for (size_t size = 0; size < text.size(); ++size) {
    const auto parsed = ParseJobText(text.substr(0, size), "job");
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.status().code(), StatusCode::kCorrupt);
      continue;
    }
    EXPECT_EQ(text[size - 1], '\n') << size;
    EXPECT_EQ(CheckSameJob(*parsed, job, "job", {}).code(), StatusCode::kChanged) << size;
  }
}

TEST(JobText, SaysWhatAnotherRunWasAbout) {
  JobText other = TextOf({"one", "tw\x1bo"});
  other.stamps = {{"one", 1, 2, 3}, {"tw\x1bo", 1, 2, 4}};
  JobText own = TextOf({"one"});
  own.stamps = {{"one", 1, 2, 3}};
  const struct {
    std::vector<SourceStamp> stamps;
    const char* words;
  } rows[] = {
      {{{"one", 1, 2, 3}}, "source tw\\x1bo is not among them now"},
      {{{"one", 2, 2, 3}}, "source one had 1 bytes, and has 2 now"},
      {{{"one", 1, 2, 5}}, "source one was replaced by another file"},
      {{{"one", 1, 3, 3}}, "source one was modified since"},
      {{{"one", 1, 2, 3}, {"three", 1, 2, 3}, {"tw\x1bo", 1, 2, 4}}, "source three is new"},
      {other.stamps, "one was written to, though its size and time are the same"},
  };
  for (const auto& row : rows) {
    own.stamps = row.stamps;
    const std::string message = CheckSameJob(other, own, "job", {}).message();
    EXPECT_THAT(message, HasSubstr("the interrupted run began: " + std::string(row.words) + ";"));
  }
  other.tool_version = "0\x1b[1m";
  EXPECT_THAT(CheckSameJob(other, TextOf({"one"}), "job", {}).message(),
              HasSubstr("begun by reshard 0\\x1b[1m, but this is"));
}

TEST(JobText, HasNoMoreShardsThanThereCanBe) {
  JobText job = TextOf({"one"});
  job.workers = kMaxWorkers;
  EXPECT_TRUE(ParseJobText(EncodeJobText(job), "job").ok());
  for (const uint64_t shards : {kMaxWorkers + 1, uint64_t{1} << 40, UINT64_MAX}) {
    job.workers = shards;
    const auto parsed = ParseJobText(EncodeJobText(job), "job");
    EXPECT_EQ(parsed.status().code(), StatusCode::kCorrupt);
    EXPECT_THAT(parsed.status().message(), Naming("65536 shares"));
  }
}

TEST(JobText, SaysHowToGoOnWithShards) {
  JobText begun = TextOf({"one"});
  JobText own = begun;
  begun.workers = 4;
  own.workers = 1;
  EXPECT_EQ(
      CheckSameJob(begun, own, "job", {2}).message(),
      "job: begun as 4 shares, but now run as 1 share; not finished: 2/4; run it with "
      "`shard=2/4`, or, in a job array, requeue the task (a new array with one task is share 0/1)");
  own.workers = 0;
  EXPECT_THAT(CheckSameJob(begun, own, "job", {1, 2}).message(),
              HasSubstr("now run by one run alone; not finished: 1/4, 2/4; run each with"));
  EXPECT_THAT(CheckSameJob(begun, own, "job", {}).message(), Naming("`CommitWorkers`"));
  EXPECT_THAT(
      CheckSameJob(own, begun, "job", {}).message(),
      HasSubstr("begun by one run alone, but now run as 4 shares; continue in the same way, or"));
}

// Each one is looked up, not looked for: with all compared with all others this would take hours.
TEST(JobText, FindsWhatChangedAmongManySources) {
  std::vector<std::string> sources;
  JobText left;
  for (int i = 0; i < 100'000; ++i) {
    sources.push_back(std::to_string(i));
    left.stamps.push_back({sources.back(), 1, 2, 3});
  }
  const std::vector<SourceStamp> stamps = left.stamps;
  left = TextOf(sources);
  left.stamps = stamps;
  sources.back() += " rewritten";
  JobText own = TextOf(sources);
  own.stamps = stamps;
  own.stamps.back().mtime_ns = 5;
  EXPECT_THAT(CheckSameJob(left, own, "job", {}).message(),
              HasSubstr("source 99999 was modified since;"));
}

}  // namespace
}  // namespace reshard::job_text_test
