// Jobs whose publication was interrupted, and what the next run makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/says.h"
#include "tests/unit/target_job_fixture.h"

namespace reshard::interrupted_job_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// What a publication that was interrupted leads to.
class InterruptedTest : public TargetJobTest {
 protected:
  void SetUp() override {
    Interrupt(Spec(both_), both_, "rank_1/a.ckpt");
    EXPECT_EQ(Everything(Target())["rank_0/a.ckpt"], "zero");
    EXPECT_FALSE(HasManifest());
    EXPECT_TRUE(HasStaging());
  }
};

TEST_F(InterruptedTest, IsCompletedByTheSameRun) {
  EXPECT_TRUE(TargetJob::Check(Spec(both_)).ok());
  auto job = TargetJob::Begin(Spec(both_));
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_TRUE(job->already_staged());
  const auto report = job->Publish();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_EQ(Listed().size(), 2);
  EXPECT_FALSE(HasStaging());
}

TEST_F(InterruptedTest, SurvivesARunThatDoesNotPublish) {
  { ASSERT_TRUE(TargetJob::Begin(Spec(both_)).ok()); }
  const auto job = TargetJob::Begin(Spec(both_));
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(job->already_staged());
}

TEST_F(InterruptedTest, IsWrittenAgainFromOtherSources) {
  JobSpec spec = Spec(newer_);
  spec.source_identities = {"source one", "source two, changed"};
  EXPECT_TRUE(TargetJob::Check(spec).ok());
  {
    const auto job = TargetJob::Begin(spec);
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_FALSE(job->already_staged());
  }
  EXPECT_EQ(Outputs(Target()), both_);
}

TEST_F(InterruptedTest, IsReplacedByTheSameFilesFromOtherSources) {
  JobSpec spec = Spec(newer_);
  spec.source_identities = {"source one"};
  const auto report = Run(spec, newer_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_EQ(Outputs(Target()), newer_);
  EXPECT_EQ(Listed().size(), 2);
}

TEST_F(InterruptedTest, IsCompletedForOtherRanksOfThePlan) {
  const Contents two = {{"rank_2/a.ckpt", "two"}};
  const auto report = Run(two);
  ASSERT_TRUE(report.ok()) << report.status().message();
  Contents all = both_;
  all.insert(two.begin(), two.end());
  EXPECT_EQ(Outputs(Target()), all);
  EXPECT_EQ(Listed().size(), 3);

  // Then its files count as outputs of before.
  EXPECT_EQ(Run(one_).status().code(), StatusCode::kAlreadyExists);
}

TEST_F(InterruptedTest, CountsAsThereForSomeOfItsFiles) {
  const auto checked = TargetJob::Check(Spec(one_));
  EXPECT_EQ(checked.status().code(), StatusCode::kAlreadyExists);
  const auto report = Run(one_);
  EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(HasManifest());
  EXPECT_EQ(Outputs(Target()), both_);
}

TEST_F(InterruptedTest, IsNotDroppedByAnotherPlanWithoutForce) {
  const Contents before = Everything(Target());
  const Contents two = {{"rank_2/a.ckpt", "two"}};
  const auto refused = Run(two, false, kOtherPlan);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(), Naming("plan aaaa", "`force`"));
  EXPECT_EQ(TargetJob::Check(Spec(two, false, kOtherPlan)).status().message(),
            refused.status().message());
  Contents after = Everything(Target());
  EXPECT_EQ(after.erase(".reshard/lock"), 0);
  Contents without_lock = before;
  without_lock.erase(".reshard/lock");
  EXPECT_EQ(after, without_lock);

  const auto forced = Run(two, true, kOtherPlan);
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  EXPECT_THAT(forced->warnings,
              ElementsAre(Says(WarningCode::kFilesAbandoned, Naming(": rank_0/a.ckpt"))));
  EXPECT_THAT(Outputs(Target()),
              UnorderedElementsAre(Pair("rank_0/a.ckpt", "zero"), Pair("rank_2/a.ckpt", "two")));
  EXPECT_THAT(Listed("manifest.json", kOtherPlan), ElementsAre(ManifestFile{"rank_2/a.ckpt", 3}));
  EXPECT_FALSE(HasStaging());
}

TEST_F(InterruptedTest, SurvivesAForcedRunOfAnotherPlanThatFails) {
  fs::create_directories(Target() / "rank_2" / "a.ckpt");  // in the way
  EXPECT_FALSE(Run({{"rank_2/a.ckpt", "two"}}, true, kOtherPlan).ok());
  {
    const auto job = TargetJob::Begin(Spec({{"rank_3/a.ckpt", "three"}}, true, kOtherPlan));
    ASSERT_TRUE(job.ok()) << job.status().message();  // and gives up
  }
  ASSERT_TRUE(Run(both_).ok());
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_FALSE(HasStaging());
}

TEST_F(InterruptedTest, StartsAgainWhenAStagedFileIsLost) {
  fs::remove(Target() / ".reshard/aaaa/files/rank_1/a.ckpt");
  const auto job = TargetJob::Begin(Spec(both_));
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_FALSE(job->already_staged());
}

TEST_F(InterruptedTest, StartsAgainWhenAPartRecordIsLost) {
  ASSERT_TRUE(fs::remove(Target() / "part_records/rank_1/a.ckpt.jsonl"));
  const auto job = TargetJob::Begin(Spec(both_));
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_FALSE(job->already_staged());
}

TEST_F(TargetJobTest, DoesNotReplaceAFileByOneThatIsCutShort) {
  ASSERT_TRUE(Run(both_).ok());
  for (const std::string path : {"rank_1/a.ckpt", "part_records/rank_1/a.ckpt.jsonl"}) {
    Interrupt(Spec(newer_, true), newer_, "rank_0/a.ckpt");
    folder_.Write("above/target/.reshard/aaaa/files/" + path, "o");
    const auto job = TargetJob::Begin(Spec(newer_));
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_FALSE(job->already_staged());
    EXPECT_EQ(ReadFile(Target() / "rank_1/a.ckpt"), "one!!");
  }
}

TEST_F(TargetJobTest, CompletesAForcedRunWithoutForce) {
  ASSERT_TRUE(Run(both_, false, kOtherPlan).ok());
  Interrupt(Spec(newer_, true), newer_, "rank_1/a.ckpt");
  EXPECT_EQ(ReadFile(Target() / "rank_0/a.ckpt"), "ZERO");
  EXPECT_EQ(ReadFile(Target() / "rank_1/a.ckpt"), "one!!");
  EXPECT_FALSE(HasManifest());
  const auto report = Run(newer_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Outputs(Target()), newer_);
}

TEST_F(TargetJobTest, KeepsJoinedFilesListedThroughAnInterruption) {
  ASSERT_TRUE(Run(zero_).ok());
  Interrupt(Spec(one_), one_, "rank_1/a.ckpt");
  EXPECT_FALSE(HasManifest());
  ASSERT_TRUE(Run(one_).ok());
  EXPECT_EQ(Listed().size(), 2);
  EXPECT_EQ(Outputs(Target()), both_);
}

TEST_F(TargetJobTest, NeedsNothingWhenOnlyTheClearingWasInterrupted) {
  const JobSpec spec = Spec(both_);
  ASSERT_TRUE(Run(both_).ok());
  const JobText journal = JobTextOf(spec);
  folder_.Write("above/target/.reshard/aaaa/journal", EncodeJobText(journal));
  EXPECT_TRUE(TargetJob::Check(spec).ok());
  auto job = TargetJob::Begin(spec);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_TRUE(job->already_staged());
  ASSERT_TRUE(job->Publish().ok());
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_FALSE(HasStaging());
}

TEST_F(TargetJobTest, MakesAFinishedSetAnewByForce) {
  ASSERT_TRUE(Run(both_).ok());
  folder_.Write("above/target/.reshard/aaaa/journal", EncodeJobText(JobTextOf(Spec(both_))));
  folder_.Write("above/target/rank_0/a.ckpt", "dead");
  {
    const auto job = TargetJob::Begin(Spec(both_, true));
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_FALSE(job->already_staged());
  }
  EXPECT_TRUE(HasManifest()) << "it stands until another one is there";
  ASSERT_TRUE(Run(both_, true).ok());
  EXPECT_EQ(Outputs(Target()), both_);
}

TEST_F(InterruptedTest, StartsAgainWhenItsManifestListsOtherFiles) {
  const fs::path manifest = Target() / ".reshard/aaaa/manifest.json";
  auto parsed = ParseManifest(ReadFile(manifest), "");
  ASSERT_TRUE(parsed.ok());
  parsed->files.pop_back();
  folder_.Write("above/target/.reshard/aaaa/manifest.json", *EncodeManifest(*parsed));
  const auto job = TargetJob::Begin(Spec(both_));
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_FALSE(job->already_staged());
}

TEST_F(TargetJobTest, DoesNotTakeAnOldJournalForAPublication) {
  const JobSpec spec = Spec(both_);
  const JobText journal = JobTextOf(spec);
  folder_.Write("above/target/.reshard/aaaa/journal", EncodeJobText(journal));
  const auto job = TargetJob::Begin(spec);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_FALSE(job->already_staged());
}

TEST_F(TargetJobTest, RefusesAJournalThatIsNone) {
  for (const char* text : {"", "rubbish", "manifest manifest.json\n", "manifest ../x\n\n"}) {
    folder_.Write("above/target/.reshard/aaaa/journal", text);
    const auto report = Run(both_);
    EXPECT_EQ(report.status().code(), StatusCode::kCorrupt) << text;
    EXPECT_THAT(report.status().message(), HasSubstr(".reshard/aaaa/journal: ")) << text;
  }
}

}  // namespace
}  // namespace reshard::interrupted_job_test
