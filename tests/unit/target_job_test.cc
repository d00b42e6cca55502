// Jobs: each promise about what a run leaves in a target folder.
#include "src/exec/target_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kPlan = "aaaa";
constexpr const char* kOtherPlan = "bbbb";

using Contents = std::map<std::string, std::string>;  // bytes by path

// The regular files below `folder`, and links as "-> where to".
Contents Everything(const fs::path& folder) {
  Contents found;
  if (!fs::exists(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = fs::relative(entry.path(), folder).string();
    if (entry.is_symlink()) {
      found[path] = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      found[path] = ReadFile(entry.path());
    }
  }
  return found;
}

// Everything but manifests and what belongs to them.
Contents Outputs(const fs::path& folder) {
  Contents found = Everything(folder);
  std::erase_if(found, [](const auto& file) {
    return IsManifestName(file.first) || file.first.starts_with("part_records/");
  });
  return found;
}

class TargetJobTest : public testing::Test {
 protected:
  JobSpec Spec(const Contents& contents, bool force = false,
               const std::string& plan = kPlan) const {
    JobSpec spec;
    spec.target_folder = Target().string();
    spec.fingerprint = plan;
    for (const auto& [path, bytes] : contents) spec.files.push_back({path, bytes.size()});
    spec.source_identities = {"source one", "source two"};
    spec.force = force;
    return spec;
  }

  // The part record of a file without Values.
  static std::string Record(const std::string& path, uint64_t size,
                            const std::string& plan = kPlan) {
    std::string record;
    PartRecordEncoder encoder([&](std::string_view piece) {
      record += piece;
      return Status();
    });
    EXPECT_TRUE(encoder.WriteHead({.plan = plan, .path = path, .size = size}).ok());
    EXPECT_TRUE(encoder.Finish().ok());
    return record;
  }
  static std::string Record(const std::string& path, const std::string& bytes,
                            const std::string& plan = kPlan) {
    return Record(path, bytes.size(), plan);
  }

  static Status Stage(const TargetJob& job, const Contents& contents,
                      const std::string& plan = kPlan) {
    for (const auto& [path, bytes] : contents) {
      auto file = job.Create(path, bytes.size());
      if (!file.ok()) return file.status();
      if (Status status = file->Append(std::as_bytes(std::span(bytes))); !status.ok()) {
        return status;
      }
      if (Status status = job.Finish(std::move(*file), path, Record(path, bytes, plan));
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

  static Result<PublishReport> Run(const JobSpec& spec, const Contents& contents) {
    auto job = TargetJob::Begin(spec);
    if (!job.ok()) return job.status();
    if (!job->already_staged()) {
      if (const Status status = Stage(*job, contents, spec.fingerprint); !status.ok())
        return status;
    }
    return job->Publish();
  }

  Result<PublishReport> Run(const Contents& contents, bool force = false,
                            const std::string& plan = kPlan) const {
    return Run(Spec(contents, force, plan), contents);
  }

  // Runs until the publication fails, as if killed: a folder stands where the file `path` belongs.
  void Interrupt(const JobSpec& spec, const Contents& contents, const std::string& path) const {
    auto job = TargetJob::Begin(spec);
    ASSERT_TRUE(job.ok()) << job.status().message();
    ASSERT_TRUE(Stage(*job, contents, spec.fingerprint).ok());
    const fs::path blocked = Target() / path;
    const fs::path aside = folder_.path() / "aside";
    if (fs::exists(blocked)) fs::rename(blocked, aside);
    fs::create_directories(blocked / "in the way");
    const auto report = job->Publish();
    EXPECT_EQ(report.status().code(), StatusCode::kIo);
    fs::remove_all(blocked);
    if (fs::exists(aside)) fs::rename(aside, blocked);
  }

  std::vector<ManifestFile> Listed(const std::string& name = "manifest.json",
                                   const std::string& plan = kPlan) const {
    const auto manifest = ParseManifest(ReadFile(Target() / name), name);
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    EXPECT_EQ(manifest->plan, plan);
    std::vector<ManifestFile> files;
    for (const ManifestFile& file : manifest->files) files.push_back({file.path, file.size});
    return files;
  }

  fs::path Target() const { return folder_.path() / "above" / "target"; }
  bool HasManifest() const { return fs::exists(Target() / "manifest.json"); }
  bool HasStaging() const { return fs::exists(Target() / ".reshard"); }

  const TemporaryFolder folder_;
  const Contents zero_ = {{"rank_0/a.ckpt", "zero"}};
  const Contents one_ = {{"rank_1/a.ckpt", "one!!"}};
  const Contents both_ = {{"rank_0/a.ckpt", "zero"}, {"rank_1/a.ckpt", "one!!"}};
  const Contents newer_ = {{"rank_0/a.ckpt", "ZERO"}, {"rank_1/a.ckpt", "ONE!!"}};
};

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
    ASSERT_TRUE(job->Create("rank_0/a.ckpt", 4).ok());
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
  EXPECT_THAT(report.status().message(), HasSubstr("files/rank_1/a.ckpt: expected a file of 5"));
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
    EXPECT_THAT(report.status().message(), HasSubstr("25 of the 26 files to write exist already: "
                                                     "rank_10/a, rank_11/a, "));
    EXPECT_THAT(report.status().message(), HasSubstr("rank_29/a and 5 more; pass --force"));
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
  EXPECT_THAT(report->warnings, ElementsAre(HasSubstr("no longer listed: rank_1/a.ckpt")));
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
              HasSubstr("manifest.json: lists the 1 files of another conversion (plan bbbb)"));
  EXPECT_EQ(Everything(Target()), before);

  const auto forced = Run(zero_, true);
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  EXPECT_THAT(forced->warnings,
              ElementsAre(HasSubstr("stay there, in no manifest any more: rank_1/a.ckpt")));
  EXPECT_EQ(Outputs(Target()), both_);
  EXPECT_THAT(Listed(), ElementsAre(ManifestFile{"rank_0/a.ckpt", 4}));
}

TEST_F(TargetJobTest, RefusesAManifestThatIsNone) {
  folder_.Write("above/target/manifest.json", "{}");
  const auto refused = Run(zero_);
  EXPECT_EQ(refused.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("is missing"), HasSubstr("pass --force")));
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
  EXPECT_THAT(refused.status().message(), HasSubstr("manifest_part0.json: lists"));
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
      EXPECT_THAT(second.status().message(), HasSubstr("another reshard run is writing to "));
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
  EXPECT_THAT(report->warnings, ElementsAre(HasSubstr("something that is not reshard's is in it")));
  EXPECT_THAT(Everything(Target() / ".reshard"), ElementsAre(Pair("notes.txt", "mine")));
}

TEST_F(TargetJobTest, RefusesWhatIsInTheWay) {
  const fs::path victim = folder_.path() / "victim";
  const struct {
    const char* name;
    std::function<void()> plant;
    const char* message;
  } rows[] = {
      {"a folder as target", [&] { fs::create_directories(Target() / "rank_0/a.ckpt"); },
       "rank_0/a.ckpt: neither free nor a file"},
      {"a link as target",
       [&] {
         fs::create_directories(Target() / "rank_0");
         fs::create_symlink(victim / "file", Target() / "rank_0/a.ckpt");
       },
       "rank_0/a.ckpt: neither free nor a file"},
      {"a pipe as target",
       [&] {
         fs::create_directories(Target() / "rank_0");
         ASSERT_EQ(mkfifo((Target() / "rank_0/a.ckpt").c_str(), 0600), 0);
       },
       "rank_0/a.ckpt: neither free nor a file"},
      {"a link as rank folder", [&] { fs::create_symlink(victim, Target() / "rank_0"); },
       "rank_0: expected a folder, found a symbolic link"},
      {"a file as rank folder", [&] { folder_.Write("above/target/rank_0", ""); },
       "rank_0: expected a folder, found a file"},
      {"a link as staging folder", [&] { fs::create_symlink(victim, Target() / ".reshard"); },
       ".reshard: expected a folder, found a symbolic link"},
      {"a link as manifest",
       [&] { fs::create_symlink(victim / "file", Target() / "manifest.json"); },
       "manifest.json: expected a file, found a symbolic link"},
  };
  for (const auto& row : rows) {
    for (const bool force : {false, true}) {
      fs::remove_all(Target());
      fs::remove_all(victim);
      fs::create_directories(Target());
      folder_.Write("victim/file", "precious");
      row.plant();
      const Contents before = Everything(folder_.path());
      const auto report = Run(both_, force);
      EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists) << row.name;
      EXPECT_THAT(report.status().message(), HasSubstr(row.message)) << row.name;
      EXPECT_EQ(Everything(folder_.path()), before) << row.name;
      const auto checked = TargetJob::Check(Spec(both_, force));
      EXPECT_EQ(checked.status().code(), StatusCode::kAlreadyExists) << row.name;
      EXPECT_EQ(Everything(folder_.path()), before) << row.name;
    }
  }
}

TEST_F(TargetJobTest, RefusesChecksumsThatNoConversionWrote) {
  folder_.Write("above/target/checksums.xxh128", "somebody's");
  EXPECT_EQ(TargetJob::Check(Spec(zero_)).status().code(), StatusCode::kAlreadyExists);
  const auto report = Run(zero_);
  EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(report.status().message(), HasSubstr("checksums.xxh128"));
  EXPECT_THAT(Everything(Target()), ElementsAre(Pair("checksums.xxh128", "somebody's")));
  ASSERT_TRUE(Run(zero_, true).ok());
  EXPECT_FALSE(fs::exists(Target() / "checksums.xxh128"));

  fs::remove_all(Target());
  fs::create_directories(Target() / "checksums.xxh128");
  EXPECT_EQ(Run(zero_, true).status().code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(fs::exists(Target() / "rank_0"));
}

TEST_F(TargetJobTest, FollowsNoLinksInTheStagingFolder) {
  folder_.Write("victim/file", "precious");
  fs::create_directories(Target() / ".reshard/bbbb/files");
  fs::create_symlink(folder_.path() / "victim", Target() / ".reshard/aaaa");
  fs::create_symlink(folder_.path() / "victim", Target() / ".reshard/bbbb/files/rank_0");
  ASSERT_TRUE(Run(both_).ok());
  EXPECT_EQ(ReadFile(folder_.path() / "victim/file"), "precious");
  EXPECT_EQ(Outputs(Target()), both_);
}

TEST_F(TargetJobTest, TakesATargetThatIsGivenByALink) {
  fs::create_directories(folder_.path() / "elsewhere");
  fs::create_directory(folder_.path() / "above");
  fs::create_symlink(folder_.path() / "elsewhere", Target());
  ASSERT_TRUE(Run(both_).ok());
  EXPECT_EQ(Outputs(folder_.path() / "elsewhere"), both_);
}

TEST_F(TargetJobTest, RefusesAFileAsTargetFolder) {
  folder_.Write("above/target", "");
  for (const Status& status : {Run(both_).status(), TargetJob::Check(Spec(both_)).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
    EXPECT_THAT(status.message(), HasSubstr("target: expected a folder, found a file"));
  }
}

TEST_F(TargetJobTest, RefusesWhatNoTargetCanHold) {
  for (const char* path :
       {"", "/a", "../a", "a/../b", ".reshard/a", "manifest.json", "manifest_part12.json"}) {
    const auto report = Run({{path, "x"}});
    EXPECT_EQ(report.status().code(), StatusCode::kInvalidArgument) << path;
  }
  EXPECT_EQ(Run(zero_, false, "../x").status().code(), StatusCode::kInvalidArgument);
  JobSpec spec = Spec(zero_);
  spec.manifest_name = "a.json";
  EXPECT_EQ(Run(spec, zero_).status().code(), StatusCode::kInvalidArgument);
  spec = Spec(zero_);
  spec.files.push_back(spec.files.front());
  EXPECT_EQ(Run(spec, zero_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Everything(folder_.path()), IsEmpty());
}

TEST_F(TargetJobTest, ChecksTheSpaceFirst) {
  JobSpec spec = Spec(zero_);
  spec.files = {{"a", uint64_t{1} << 62}, {"b", uint64_t{3} << 62}};
  for (const Status& status : {TargetJob::Begin(spec).status(), TargetJob::Check(spec).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kIo);
    EXPECT_THAT(status.message(), HasSubstr("the outputs need 18446744073709551615 bytes, "));
  }
  EXPECT_FALSE(fs::exists(Target()));
}

TEST_F(TargetJobTest, RefusesARankFolderThatCannotBeWrittenTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user whom permissions bind";
  fs::permissions(folder_.path(), static_cast<fs::perms>(0711));
  fs::create_directories(Target() / "rank_0");
  for (const char* folder : {"", "rank_0"}) {
    ASSERT_EQ(chown((Target() / folder).c_str(), 65534, 65534), 0);
  }
  fs::permissions(Target() / "rank_0", static_cast<fs::perms>(0555));
  ASSERT_EQ(seteuid(65534), 0);
  const auto report = Run(both_);
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(report.status().code(), StatusCode::kIo);
  EXPECT_THAT(report.status().message(), HasSubstr("rank_0: cannot write to the folder"));
  EXPECT_FALSE(HasStaging());
}

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
  EXPECT_THAT(refused.status().message(),
              HasSubstr("an earlier conversion (plan aaaa) was interrupted while it was published; "
                        "run the same command again to complete it, or pass --force"));
  EXPECT_EQ(TargetJob::Check(Spec(two, false, kOtherPlan)).status().message(),
            refused.status().message());
  Contents after = Everything(Target());
  EXPECT_EQ(after.erase(".reshard/lock"), 0);
  Contents without_lock = before;
  without_lock.erase(".reshard/lock");
  EXPECT_EQ(after, without_lock);

  const auto forced = Run(two, true, kOtherPlan);
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  EXPECT_THAT(forced->warnings, ElementsAre(HasSubstr("in no manifest any more: rank_0/a.ckpt")));
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
  fs::remove(Target() / ".reshard/aaaa/files/part_records/rank_1/a.ckpt.jsonl");
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

TEST_F(TargetJobTest, CheckLeavesNoTrace) {
  EXPECT_TRUE(TargetJob::Check(Spec(both_)).ok());
  EXPECT_FALSE(fs::exists(folder_.path() / "above"));
  ASSERT_TRUE(Run(zero_).ok());
  const Contents before = Everything(Target());
  EXPECT_TRUE(TargetJob::Check(Spec(one_)).ok());
  EXPECT_EQ(TargetJob::Check(Spec(both_)).status().code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(TargetJob::Check(Spec(both_, true)).ok());
  EXPECT_EQ(TargetJob::Check(Spec(one_, false, kOtherPlan)).status().code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(Everything(Target()), before);
  EXPECT_FALSE(HasStaging());
}

class ResumeTest : public TargetJobTest {
 protected:
  JobSpec Resuming(const Contents& contents, Resume resume = Resume::kTrust) const {
    JobSpec spec = Spec(contents);
    spec.resume = resume;
    return spec;
  }

  // A run of `spec` that finishes `finished`, begins `begun`, and ends.
  static void Leave(const JobSpec& spec, const Contents& finished, const Contents& begun = {}) {
    auto job = TargetJob::Begin(spec);
    ASSERT_TRUE(job.ok()) << job.status().message();
    ASSERT_TRUE(Stage(*job, finished).ok());
    for (const auto& [path, bytes] : begun) ASSERT_TRUE(job->Create(path, bytes.size()).ok());
  }

  void ExpectRefused(const JobSpec& spec, StatusCode code, const std::string& words) const {
    Contents before = Everything(Target());
    before.emplace(".reshard/lock", "");
    const auto job = TargetJob::Begin(spec);
    EXPECT_EQ(job.status().code(), code) << job.status().message();
    EXPECT_THAT(job.status().message(), HasSubstr(words));
    EXPECT_THAT(job.status().message(), HasSubstr("run without --resume to write all files anew"));
    EXPECT_EQ(TargetJob::Check(spec).status().code(), code);
    Contents after = Everything(Target());
    after.emplace(".reshard/lock", "");  // may go
    EXPECT_EQ(after, before) << "what was finished stays";
  }
};

TEST_F(ResumeTest, KeepsWhatIsFinishedAndNothingElse) {
  Leave(Spec(both_), zero_, one_);
  EXPECT_FALSE(HasManifest());
  EXPECT_THAT(Everything(Target() / ".reshard"),
              UnorderedElementsAre(Pair("aaaa/files/part_records/rank_0/a.ckpt.jsonl", testing::_),
                                   Pair("aaaa/files/rank_0/a.ckpt", "zero"),
                                   Pair("aaaa/job", testing::_), Pair("lock", "")));
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
  spec.resume = Resume::kNo;
  EXPECT_EQ(TargetJob::Begin(spec).status().code(), StatusCode::kIo);
}

TEST_F(ResumeTest, RefusesAnotherJob) {
  Leave(Spec(both_), zero_);
  JobSpec changed = Resuming(both_);
  changed.source_identities[1] = "source two, rewritten";
  ExpectRefused(changed, StatusCode::kChanged,
                "then: source source two, now: source source two, r");
  ExpectRefused(Resuming(zero_), StatusCode::kMismatch, "then: target 5 rank_1/a.ckpt, now: none");
  JobSpec without = Resuming(both_);
  without.checksum = false;
  ExpectRefused(without, StatusCode::kMismatch, "begun without --no-checksum, now run with it");
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

TEST_F(TargetJobTest, DoesNotJoinAnotherCheckpoint) {
  JobSpec first = Spec(zero_);
  first.sources = {{"rank_0/model.ckpt", 100}};
  const auto run = [&](const JobSpec& spec, const Contents& contents) {
    auto job = TargetJob::Begin(spec);
    if (!job.ok()) return job.status();
    for (const auto& [path, bytes] : contents) {
      auto file = job->Create(path, bytes.size());
      EXPECT_TRUE(file->Append(std::as_bytes(std::span(bytes))).ok());
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
      EXPECT_TRUE(job->Finish(std::move(*file), path, record).ok());
    }
    return job->Publish().status();
  };
  ASSERT_TRUE(run(first, zero_).ok());
  JobSpec second = Spec(one_);
  second.sources = {{"rank_0/model.ckpt", 101}};
  const auto job = TargetJob::Begin(second);
  EXPECT_EQ(job.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(
      job.status().message(),
      HasSubstr("manifest.json: made from a source file \"rank_0/model.ckpt\" of 100 bytes, "
                "which has 101 now"));
  second.force = true;
  ASSERT_TRUE(run(second, one_).ok());
  EXPECT_EQ(Listed().size(), 1U);
}

}  // namespace
}  // namespace reshard
