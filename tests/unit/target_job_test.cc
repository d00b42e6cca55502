// Jobs: each promise about what a run leaves in a target folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/says.h"
#include "tests/unit/target_job_fixture.h"

namespace reshard::target_job_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

TEST_F(TargetJobTest, PublishesAWholeSet) {
  const mode_t mask = umask(027);
  const auto report = Run(both_);
  umask(mask);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_FALSE(HasStaging());
  EXPECT_THAT(Listed(),
              ElementsAre(ManifestFile{"rank_0/a.ckpt", 4}, ManifestFile{"rank_1/a.ckpt", 5}));
  for (const char* folder : {"", "rank_0", "../../above"}) {
    EXPECT_EQ(fs::status(Target() / folder).permissions(), fs::perms(0750)) << folder;
  }
  for (const char* file : {"rank_0/a.ckpt", "manifest.json"}) {
    EXPECT_EQ(fs::status(Target() / file).permissions(), fs::perms(0640)) << file;
  }
}

TEST_F(TargetJobTest, PublishesDeepPathsAndFilesWithoutBytes) {
  const Contents contents = {{"a/b/c/d", "deep"}, {"top", ""}};
  const auto report = Run(contents);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Outputs(Target()), contents);
}

TEST_F(TargetJobTest, LeavesTheNamesAloneUntilItPublishes) {
  ASSERT_TRUE(Run(both_).ok());
  const Contents before = Everything(Target());
  auto job = TargetJob::Begin(Spec(newer_, true));
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(Stage(*job, newer_).ok());
  Contents now = Everything(Target());
  std::erase_if(now, [](const auto& file) { return file.first.starts_with(".reshard/"); });
  EXPECT_EQ(now, before);
}

TEST_F(TargetJobTest, ClearsWhatAFailedRunDidNotFinish) {
  {
    auto job = TargetJob::Begin(Spec(both_));
    ASSERT_TRUE(job.ok());
    ASSERT_TRUE(job->Create(PartAt(*job, "rank_0/a.ckpt"), {}).ok());
    EXPECT_TRUE(HasStaging());
  }
  EXPECT_FALSE(fs::exists(folder_.path() / "above"));  // it was made for this run
  fs::create_directories(Target());
  { ASSERT_TRUE(TargetJob::Begin(Spec(both_)).ok()); }
  EXPECT_TRUE(fs::is_empty(Target()));
}

TEST_F(TargetJobTest, PublishesNothingWhenAStagedFileIsNotWhole) {
  auto job = TargetJob::Begin(Spec(both_));
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(Stage(*job, zero_).ok());
  const auto report = job->Publish();
  EXPECT_EQ(report.status().code(), StatusCode::kIo);
  EXPECT_THAT(report.status().message(), Naming("files/rank_1/a.ckpt: ", " 5 "));
  EXPECT_THAT(Outputs(Target()), Not(testing::Contains(Pair("rank_0/a.ckpt", "zero"))));
  EXPECT_FALSE(HasManifest());
}

TEST_F(TargetJobTest, RefusesToReplaceOutputs) {
  Contents many;
  for (int i = 10; i < 35; ++i) many["rank_" + std::to_string(i) + "/a"] = "x";
  ASSERT_TRUE(Run(many).ok());
  const Contents before = Everything(Target());
  many["rank_99/a"] = "x";
  for (const char* plan : {kPlan, kOtherPlan}) {
    const auto report = Run(many, false, plan);
    EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
    EXPECT_THAT(
        report.status().message(),
        Naming("25 of the 26 ", ": rank_10/a, rank_11/a, rank_12/a and 22 more;", "`force`"));
    EXPECT_EQ(Everything(Target()), before);
    EXPECT_FALSE(HasStaging());
  }
}

TEST_F(TargetJobTest, ReplacesOutputsByForce) {
  ASSERT_TRUE(Run(both_).ok());
  const auto report = Run(newer_, true);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_EQ(Outputs(Target()), newer_);
  EXPECT_EQ(Listed().size(), 2);
}

TEST_F(TargetJobTest, JoinsTheManifestOfTheSamePlan) {
  ASSERT_TRUE(Run(one_).ok());
  const auto report = Run(zero_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_EQ(Outputs(Target()), both_);
  const std::string joined = ReadFile(Target() / "manifest.json");
  fs::remove_all(Target());
  ASSERT_TRUE(Run(both_).ok());
  EXPECT_EQ(ReadFile(Target() / "manifest.json"), joined);
}

TEST_F(TargetJobTest, NoLongerListsJoinedFilesThatAreGone) {
  ASSERT_TRUE(Run(both_).ok());
  fs::remove_all(Target() / "rank_1");
  const auto report = Run(zero_, true);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings,
              ElementsAre(Says(WarningCode::kFilesGone, Naming(": rank_1/a.ckpt"))));
  EXPECT_THAT(Listed(), ElementsAre(ManifestFile{"rank_0/a.ckpt", 4}));
}

// As when a rank's folder was moved to another disk.
TEST_F(TargetJobTest, NoLongerListsFilesThatAreReachedByALink) {
  for (const char* plan : {kPlan, kOtherPlan}) {
    fs::remove_all(folder_.path() / "above");
    fs::remove_all(folder_.path() / "moved");
    ASSERT_TRUE(Run(one_).ok());
    fs::rename(Target() / "rank_1", folder_.path() / "moved");
    fs::create_directory_symlink(folder_.path() / "moved", Target() / "rank_1");
    const auto report = Run(zero_, true, plan);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->warnings.empty(), plan == kOtherPlan);
    EXPECT_THAT(Listed("manifest.json", plan), ElementsAre(ManifestFile{"rank_0/a.ckpt", 4}));
    EXPECT_EQ(ReadFile(folder_.path() / "moved/a.ckpt"), "one!!");
  }
}

TEST_F(TargetJobTest, RefusesTheManifestOfAnotherPlan) {
  ASSERT_TRUE(Run(one_, false, kOtherPlan).ok());
  const Contents before = Everything(Target());
  const auto refused = Run(zero_);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(),
              Naming("manifest.json: ", "1 files of another conversion"));
  EXPECT_EQ(Everything(Target()), before);

  const auto forced = Run(zero_, true);
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  EXPECT_THAT(forced->warnings,
              ElementsAre(Says(WarningCode::kFilesAbandoned, Naming(": rank_1/a.ckpt"))));
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_THAT(Listed(), ElementsAre(ManifestFile{"rank_0/a.ckpt", 4}));
}

TEST_F(TargetJobTest, RefusesAManifestThatIsNone) {
  folder_.Write("above/target/manifest.json", "{}");
  const auto refused = Run(zero_);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(), Naming("manifest.json: ", "`force`"));
  ASSERT_TRUE(Run(zero_, true).ok());
  EXPECT_EQ(Listed().size(), 1);
}

TEST_F(TargetJobTest, KeepsStagesApart) {
  JobSpec stage = Spec(zero_);
  stage.manifest_name = "manifest_part0.json";
  ASSERT_TRUE(Run(stage, zero_).ok());
  stage = Spec(one_, false, kOtherPlan);
  stage.manifest_name = "manifest_part1.json";
  ASSERT_TRUE(Run(stage, one_).ok());
  EXPECT_THAT(Listed("manifest_part0.json"), ElementsAre(ManifestFile{"rank_0/a.ckpt", 4}));
  EXPECT_THAT(Listed("manifest_part1.json", kOtherPlan),
              ElementsAre(ManifestFile{"rank_1/a.ckpt", 5}));

  // A manifest that lists what is to be written is no better than the file itself.
  fs::remove(Target() / "rank_0/a.ckpt");
  const auto refused = Run(zero_, false, kOtherPlan);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(), Naming("manifest_part0.json: "));
  ASSERT_TRUE(Run(zero_, true, kOtherPlan).ok());
  EXPECT_FALSE(fs::exists(Target() / "manifest_part0.json"));
  EXPECT_TRUE(fs::exists(Target() / "manifest_part1.json"));
}

TEST_F(TargetJobTest, ExcludesOtherRuns) {
  {
    const auto first = TargetJob::Begin(Spec(zero_));
    ASSERT_TRUE(first.ok());
    for (const char* plan : {kPlan, kOtherPlan}) {
      const auto second = TargetJob::Begin(Spec(one_, true, plan));
      EXPECT_EQ(second.status().code(), StatusCode::kAlreadyExists);
      EXPECT_THAT(second.status().message(), Naming(Target().string()));
      EXPECT_EQ(TargetJob::Check(Spec(one_, true, plan)).status().message(),
                second.status().message());
    }
    EXPECT_TRUE(HasStaging());
  }
  EXPECT_TRUE(Run(one_).ok());
}

TEST_F(TargetJobTest, ClearsLeftOversOfKilledRuns) {
  folder_.Write("above/target/.reshard/aaaa/files/rank_0/a.ckpt", "half");
  folder_.Write("above/target/.reshard/aaaa/manifest.json", "{");
  folder_.Write("above/target/.reshard/aaaa/journal.new", "manifest");
  folder_.Write("above/target/.reshard/cccc/files/rank_7/a.ckpt", "half");
  folder_.Write("above/target/.reshard/dddd", "not even a folder");
  folder_.Write("above/target/.reshard/lock", "");
  const auto report = Run(both_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_FALSE(HasStaging());
}

TEST_F(TargetJobTest, LeavesForeignThingsInTheStagingFolder) {
  folder_.Write("above/target/.reshard/notes.txt", "mine");
  const auto report = Run(both_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->warnings, ElementsAre(Says(WarningCode::kLeftovers, Naming(".reshard"))));
  EXPECT_THAT(Everything(Target() / ".reshard"), ElementsAre(Pair("notes.txt", "mine")));
}

TEST_F(TargetJobTest, DoesNotJoinAnotherCheckpoint) {
  JobSpec first = Spec(zero_);
  first.sources = {{"rank_0/model.ckpt", 100}};
  const auto run = [&](const JobSpec& spec, const Contents& contents) {
    auto job = TargetJob::Begin(spec);
    if (!job.ok()) return job.status();
    for (const auto& [path, bytes] : contents) {
      const FilePart part = PartAt(*job, path);
      auto file = job->Create(part, {});
      EXPECT_TRUE(file->WriteAt(0, std::as_bytes(std::span(bytes))).ok());
      std::string record;
      PartRecordEncoder encoder([&](std::string_view piece) {
        record += piece;
        return Status();
      });
      EXPECT_TRUE(
          encoder
              .WriteHead(
                  {.plan = kPlan, .path = path, .size = bytes.size(), .sources = spec.sources})
              .ok());
      EXPECT_TRUE(encoder.Finish().ok());
      EXPECT_TRUE(job->Finish(part, std::move(*file), WithRecord(record), {}).ok());
    }
    return job->Publish().status();
  };
  ASSERT_TRUE(run(first, zero_).ok());
  JobSpec second = Spec(one_);
  second.sources = {{"rank_0/model.ckpt", 101}};
  const auto job = TargetJob::Begin(second);
  EXPECT_EQ(job.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(job.status().message(),
              Naming("manifest.json: ", "\"rank_0/model.ckpt\"", "100 ", "101 "));
  second.output.force = true;
  ASSERT_TRUE(run(second, one_).ok());
  EXPECT_EQ(Listed().size(), 1U);
}

// Staged folders are moved whole where the target folder lacks them.
TEST_F(TargetJobTest, MovesOnlyItsOwnFiles) {
  auto job = TargetJob::Begin(Spec(both_));
  ASSERT_TRUE(job.ok()) << job.status().message();
  ASSERT_TRUE(Stage(*job, both_).ok());
  for (const std::string path : {"rank_0/b.ckpt", "rank_1/inner/b.ckpt", "rank_2/b.ckpt",
                                 "part_records/rank_0/b.ckpt.jsonl", "part_records/b"}) {
    folder_.Write("above/target/.reshard/aaaa/files/" + path, "not ours");
  }
  fs::create_directory(Target() / ".reshard/aaaa/files/rank_3");
  const auto report = job->Publish();
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_FALSE(fs::exists(Target() / "part_records/rank_0/b.ckpt.jsonl"));
  EXPECT_FALSE(fs::exists(Target() / "part_records/b"));
  EXPECT_FALSE(fs::exists(Target() / "rank_3"));
  EXPECT_FALSE(HasStaging());
}

TEST_F(TargetJobTest, MovesFilesIntoFoldersThatAreThere) {
  folder_.Write("above/target/rank_0/mine", "stays");
  folder_.Write("above/target/part_records/rank_1/mine", "stays");
  ASSERT_TRUE(Run(both_).ok());
  Contents expected = both_;
  expected["rank_0/mine"] = "stays";
  EXPECT_EQ(Outputs(Target()), expected);
  EXPECT_EQ(ReadFile(Target() / "part_records/rank_1/mine"), "stays");
}

}  // namespace
}  // namespace reshard::target_job_test
