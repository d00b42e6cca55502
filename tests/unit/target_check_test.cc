// Jobs: what is in the way of one, told before anything is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/says.h"
#include "tests/unit/target_job_fixture.h"

namespace reshard::target_check_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_F(TargetJobTest, RefusesWhatIsInTheWay) {
  const fs::path victim = folder_.path() / "victim";
  const struct {
    const char* name;
    std::function<void()> plant;
    const char* message;
  } rows[] = {
      {"a folder as target", [&] { fs::create_directories(Target() / "rank_0/a.ckpt"); },
       "rank_0/a.ckpt: expected a file or a free name"},
      {"a link as target",
       [&] {
         fs::create_directories(Target() / "rank_0");
         fs::create_symlink(victim / "file", Target() / "rank_0/a.ckpt");
       },
       "rank_0/a.ckpt: expected a file or a free name"},
      {"a pipe as target",
       [&] {
         fs::create_directories(Target() / "rank_0");
         ASSERT_EQ(mkfifo((Target() / "rank_0/a.ckpt").c_str(), 0600), 0);
       },
       "rank_0/a.ckpt: expected a file or a free name"},
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

TEST_F(TargetJobTest, ReplacesAManifestOfNamesThatNoFileSystemHas) {
  const std::string name(300, 'n');
  for (const std::string& path : {name, name + "/a.ckpt", "rank_0/" + name}) {
    const auto manifest = EncodeManifest(
        {.tool_version = "0.1.0",
         .plan = kOtherPlan,
         .files = {
             {.path = path, .size = 4, .record_size = 1, .record_digest = std::string(32, '0')}}});
    ASSERT_TRUE(manifest.ok()) << manifest.status().message();
    folder_.Write("above/target/manifest.json", *manifest);
    EXPECT_EQ(Run(zero_).status().code(), StatusCode::kAlreadyExists);
    const auto report = Run(zero_, true);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(Outputs(Target()), zero_);
    fs::remove_all(Target());
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
    EXPECT_THAT(status.message(), Naming("target: "));
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
    EXPECT_THAT(status.message(), Naming("16.0 EiB"));
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
  EXPECT_THAT(report.status().message(), Naming("rank_0: "));
  EXPECT_FALSE(HasStaging());
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

}  // namespace
}  // namespace reshard::target_check_test
