// Jobs that ended before publication, and what a run that resumes keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/says.h"
#include "tests/unit/target_job_fixture.h"

namespace reshard::resumed_job_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

class ResumeTest : public TargetJobTest {
 protected:
  JobSpec Resuming(const Contents& contents,
                   OutputChoice::Resume resume = OutputChoice::Resume::kTrust) const {
    JobSpec spec = Spec(contents);
    spec.output.resume = resume;
    return spec;
  }

  // A run of `spec` that finishes `finished`, begins `begun`, and ends.
  static void Leave(const JobSpec& spec, const Contents& finished, const Contents& begun = {}) {
    auto job = TargetJob::Begin(spec);
    ASSERT_TRUE(job.ok()) << job.status().message();
    ASSERT_TRUE(Stage(*job, finished).ok());
    for (const auto& [path, bytes] : begun) ASSERT_TRUE(job->Create(PartAt(*job, path), {}).ok());
  }

  void ExpectRefused(const JobSpec& spec, StatusCode code, const std::string& words) const {
    Contents before = Everything(Target());
    before.emplace(".reshard/lock", "");
    const auto job = TargetJob::Begin(spec);
    EXPECT_EQ(job.status().code(), code) << job.status().message();
    EXPECT_THAT(job.status().message(), HasSubstr(words));
    EXPECT_THAT(job.status().message(), Naming("`resume`"));
    EXPECT_EQ(TargetJob::Check(spec).status().code(), code);
    Contents after = Everything(Target());
    after.emplace(".reshard/lock", "");  // may go
    EXPECT_EQ(after, before) << "what was finished stays";
  }
};

TEST_F(ResumeTest, KeepsWhatIsFinishedAndNothingElse) {
  Leave(Spec(both_), zero_, one_);
  EXPECT_FALSE(HasManifest());
  EXPECT_THAT(
      Everything(Target() / ".reshard"),
      UnorderedElementsAre(Pair("aaaa/files/part_records/rank_0/a.ckpt.jsonl", testing::_),
                           Pair("aaaa/files/rank_0/a.ckpt", "zero"), Pair("aaaa/job", testing::_),
                           Pair("aaaa/run", testing::_), Pair("lock", "")));
  {
    auto job = TargetJob::Begin(Resuming(both_));
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_FALSE(job->already_staged());
    EXPECT_NE(job->Finished("rank_0/a.ckpt"), nullptr);
    EXPECT_EQ(job->Finished("rank_1/a.ckpt"), nullptr);
    EXPECT_EQ(job->CountFinished(), 1U);
    ASSERT_TRUE(Stage(*job, one_).ok());
    ASSERT_TRUE(job->Publish().ok());
  }
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_FALSE(HasStaging());
  const Contents resumed = Everything(Target());
  fs::remove_all(Target());
  ASSERT_TRUE(Run(both_).ok());
  EXPECT_EQ(Everything(Target()), resumed) << "as if nothing had happened";
}

TEST_F(ResumeTest, LeavesNothingWhenNothingIsFinished) {
  Leave(Spec(both_), {}, zero_);
  EXPECT_FALSE(fs::exists(folder_.path() / "above"));
  EXPECT_TRUE(Run(Resuming(both_), both_).ok()) << "nothing to resume is no error";
}

TEST_F(ResumeTest, AFinishedFileCanBeGivenUp) {
  Leave(Spec(both_), zero_);
  ASSERT_TRUE(Run(Resuming(both_), both_).ok());
  EXPECT_EQ(Outputs(Target()), both_);
}

TEST_F(ResumeTest, DoesNotTrustAFileThatIsNotAsRecorded) {
  const std::string staged = "above/target/.reshard/aaaa/files/";
  const std::string record = staged + "part_records/rank_0/a.ckpt.jsonl";
  Leave(Spec(both_), zero_);
  const std::string good = ReadFile(folder_.path() / record);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {staged + "rank_0/a.ckpt", "zer"},
      {staged + "rank_0/a.ckpt", "zero!"},
      {record, ""},
      {record, good.substr(0, good.size() - 1)},
      {record, Record("rank_1/a.ckpt", "zero")},
      {record, Record("rank_0/a.ckpt", "zero", kOtherPlan)},
  };
  for (const auto& [path, bytes] : rows) {
    fs::remove_all(Target());
    Leave(Spec(both_), both_);
    folder_.Write(path, bytes);
    const auto job = TargetJob::Begin(Resuming(both_));
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_EQ(job->Finished("rank_0/a.ckpt"), nullptr) << path << ": " << bytes;
    EXPECT_NE(job->Finished("rank_1/a.ckpt"), nullptr);
    EXPECT_FALSE(fs::exists(folder_.path() / staged / "rank_0/a.ckpt"));
  }
}

TEST_F(ResumeTest, NeedsSpaceOnlyForWhatIsNotFinished) {
  fs::create_directories(Target());
  const uint64_t more_than_free = fs::space(Target()).free + (uint64_t{1} << 30);
  JobSpec spec = Resuming(one_);
  spec.files.insert(spec.files.begin(), {"rank_0/a.ckpt", more_than_free});
  folder_.Write("above/target/.reshard/aaaa/job", EncodeJobText(JobTextOf(spec)));
  const std::string staged = "above/target/.reshard/aaaa/files/";
  folder_.Write(staged + "part_records/rank_0/a.ckpt.jsonl",
                Record("rank_0/a.ckpt", more_than_free));
  folder_.Write(staged + "rank_0/a.ckpt", "");
  fs::resize_file(folder_.path() / staged / "rank_0/a.ckpt", more_than_free);  // takes no space
  EXPECT_TRUE(TargetJob::Check(spec).ok()) << TargetJob::Check(spec).status().message();
  {
    auto job = TargetJob::Begin(spec);
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_NE(job->Finished("rank_0/a.ckpt"), nullptr);
  }
  spec.output.resume = OutputChoice::Resume::kNo;
  EXPECT_EQ(TargetJob::Begin(spec).status().code(), StatusCode::kIo);
}

TEST_F(ResumeTest, RefusesAnotherJob) {
  Leave(Spec(both_), zero_);
  JobSpec changed = Resuming(both_);
  changed.source_identities[1] = "source two, rewritten";
  ExpectRefused(changed, StatusCode::kChanged,
                "one was written to, though its size and time are the same");
  JobSpec another = Resuming(both_);
  another.source_identities[1] = "source two, rewritten";
  another.stamps = {{"two", 1, 2, 3}};
  ExpectRefused(another, StatusCode::kChanged, "source two is new");
  ExpectRefused(Resuming(zero_), StatusCode::kMismatch, "then: target 5 rank_1/a.ckpt, now: none");
  JobSpec without = Resuming(both_);
  without.checks.checksum = false;
  ExpectRefused(without, StatusCode::kMismatch,
                "begun without `checksum=false`, but now run with it");
  JobSpec other_plan = Resuming(both_);
  other_plan.fingerprint = kOtherPlan;
  ExpectRefused(other_plan, StatusCode::kMismatch, "had another plan (aaaa; this is bbbb)");
  JobText older = JobTextOf(Spec(both_));
  older.tool_version = "0.0.1";
  folder_.Write("above/target/.reshard/aaaa/job", EncodeJobText(older));
  ExpectRefused(Resuming(both_), StatusCode::kMismatch, "begun by reshard 0.0.1");
}

TEST_F(ResumeTest, WithoutItEverythingIsWrittenAnew) {
  Leave(Spec(both_), zero_);
  JobSpec changed = Spec(both_);
  changed.source_identities[1] = "source two, rewritten";
  const auto job = TargetJob::Begin(changed);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->Finished("rank_0/a.ckpt"), nullptr);
}

TEST_F(ResumeTest, FindsItsSetPublished) {
  JobSpec spec = Spec(both_);
  spec.stamps = {{"rank_0/s.ckpt", 1, 2, 3}};
  spec.checks.checksum = false;
  ASSERT_TRUE(Run(spec, both_).ok());
  // What a run by force left, which was to write it once more.
  JobSpec forced = spec;
  forced.output.force = true;
  Leave(forced, zero_);
  ASSERT_TRUE(HasStaging());
  spec.output.resume = OutputChoice::Resume::kTrust;
  const auto job = TargetJob::Begin(spec);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_TRUE(job->earlier().found);
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_TRUE(HasManifest());
  EXPECT_FALSE(HasStaging());
}

TEST_F(ResumeTest, TellsBeforeItDiscardsWhatIsFinished) {
  JobSpec again = Spec(both_);
  std::vector<std::string> notes;
  again.note = [&](const std::string& note) {
    EXPECT_TRUE(fs::exists(Target() / ".reshard/aaaa/files/rank_0/a.ckpt"));
    notes.push_back(note);
  };
  Leave(Spec(both_), zero_, one_);
  ASSERT_TRUE(TargetJob::Check(again).ok());
  ASSERT_TRUE(TargetJob::Begin(again).ok());
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[1],
              HasSubstr("1 of 2 files that an interrupted run had finished is discarded"));
  EXPECT_THAT(notes[1], Naming("`resume`"));
  // Another run's, which could not be resumed.
  Leave(Spec(both_), zero_);
  again.fingerprint = kOtherPlan;
  ASSERT_TRUE(TargetJob::Begin(again).ok());
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_THAT(notes[2], testing::Not(HasSubstr("`resume`")));
  // Nothing was finished.
  Leave(Spec(both_), {}, one_);
  ASSERT_TRUE(TargetJob::Begin(Spec(both_)).ok());
  EXPECT_EQ(notes.size(), 3U);
}

}  // namespace
}  // namespace reshard::resumed_job_test
