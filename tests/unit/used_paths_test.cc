// CheckOutput: which files may not be written beside what a call reads and writes.
#include "reshard/used_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "reshard/layout_report.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class UsedPathsTest : public testing::Test {
 protected:
  UsedPathsTest() {
    for (const char* name :
         {"src/rank_0/net-1_1.ckpt", "src/rank_1/net-1_1.ckpt", "src/strategy/s0.ckpt",
          "src/notes.txt", "node0/net.ckpt", "node0/log", "s.json", "full.ckpt", "log",
          "old/rank_0/a.ckpt", "old/part_records/rank_0/a.ckpt.jsonl", "old/manifest.json",
          "old/checksums.xxh128", "old/.reshard/lock", "old/log", "other.reshard"}) {
      folder_.Write(name, "x");
    }
    fs::create_directory_symlink("src", At("to_src"));
    fs::create_directory_symlink("new", At("to_new"));
    fs::create_hard_link(At("src/rank_1/net-1_1.ckpt"), At("hard_source"));
    fs::create_hard_link(At("s.json"), At("hard_strategy"));
    fs::create_hard_link(At("old/part_records/rank_0/a.ckpt.jsonl"), At("hard_record"));
    fs::create_symlink("src/rank_0/net-1_1.ckpt", At("to_source"));
    fs::create_symlink("new/manifest.json", At("to_manifest"));
    used_ = {.checkpoints = {At("src"), At("node{rank}/net.ckpt"), ""},
             .files = {At("s.json"), At("src/strategy"), At("full.ckpt"), At("other.reshard"), ""},
             .targets = {At("old"), At("new"), ""},
             .outputs = {At("made/out.ckpt"), ""}};
  }

  std::string At(const std::string& path) const { return (folder_.path() / path).string(); }

  const TemporaryFolder folder_;
  UsedPaths used_;
};

TEST_F(UsedPathsTest, RefusesWhatIsReadOrWritten) {
  const struct {
    const char* output;
    const char* message;
  } rows[] = {
      {"src/rank_0/net-1_1.ckpt", "belongs to the checkpoint"},
      {"src/rank_0/new", "it lies in rank_0, the folder of a rank"},
      {"to_src/rank_0/../rank_1/net-1_1.ckpt", "as rank_1/net-1_1.ckpt: "},
      {"hard_source", "as rank_1/net-1_1.ckpt: "},
      {"to_source", "as rank_0/net-1_1.ckpt: "},
      {"node0/net.ckpt", "would destroy"},
      {"s.json", "would destroy"},
      {"hard_strategy", "s.json, which is read"},
      {"src/strategy/s0.ckpt", "strategy/s0.ckpt, which is read"},
      {"full.ckpt", "would destroy"},
      {"other", "other.reshard, which is read"},
      {"old/rank_0/a.ckpt", "the folder of a rank"},
      {"old/manifest.json", "is that of a manifest"},
      {"old/manifest_part1.json", "is that of a manifest"},
      {"old/checksums.xxh128", "is that of a list of checksums"},
      {"old/part_records/rank_0/a.ckpt.jsonl", "the folder of the part records"},
      {"old/.reshard/lock", "the staging folder .reshard"},
      {"hard_record", "as part_records/rank_0/a.ckpt.jsonl: "},
      {"new/rank_3/a.ckpt", "the folder of a rank"},
      {"new/manifest.json", "is that of a manifest"},
      {"new/../new/./checksums.xxh128", "is that of a list of checksums"},
      {"to_new/part_records/x", "the folder of the part records"},
      {"to_manifest", "as manifest.json: "},
      {"new/.reshard/x", "the staging folder .reshard"},
      {"made/out.ckpt", "made/out.ckpt is written there"},
      {"made/../made/out.ckpt.reshard", "made/out.ckpt is written there"},
  };
  for (const auto& row : rows) {
    const Status status = CheckOutput(At(row.output), used_);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.output;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.output;
  }
}

TEST_F(UsedPathsTest, AllowsAllElse) {
  for (const char* output :
       {"log", "src/notes.txt", "src/report.html", "src/strategy/s1.ckpt", "node0/log", "old/log",
        "old/report.html", "new/report.html", "made/log", "nowhere/log", "manifest.json"}) {
    const Status status = CheckOutput(At(output), used_);
    EXPECT_TRUE(status.ok()) << output << ": " << status.message();
  }
  EXPECT_TRUE(CheckOutput("", used_).ok());
  EXPECT_TRUE(CheckOutput("/dev/null", {.files = {"/dev/null"}}).ok());
  EXPECT_TRUE(CheckOutput(At(std::string(250, 'n')), used_).ok());
}

TEST_F(UsedPathsTest, TakesRelativePaths) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  const Status same = CheckOutput("./src/../s.json", {.files = {"s.json"}});
  const Status made = CheckOutput(At("new/rank_0/a.ckpt"), {.targets = {"new"}});
  fs::current_path(before);
  EXPECT_EQ(same.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(made.code(), StatusCode::kInvalidArgument);
}

TEST_F(UsedPathsTest, AConversionsPathsAreThoseOfItsOptions) {
  ConvertOptions options;
  options.source.files = {{3, "three.ckpt"}};
  options.source.strategy = "s";
  options.target.strategy = "d";
  options.checks.reference = "full";
  options.source.group_info = {"group"};
  options.target.folder = "new";
  const UsedPaths used = PathsOf(options);
  EXPECT_THAT(used.checkpoints, testing::ElementsAre("", "three.ckpt"));
  EXPECT_THAT(used.files, testing::ElementsAre("s", "d", "full", "group"));
  EXPECT_THAT(used.targets, testing::ElementsAre("new"));
}

TEST_F(UsedPathsTest, AReportNeedsAFolderAndANameThatIsFree) {
  EXPECT_EQ(CheckReport(At("s.json"), true, used_).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckReport(At("log"), false, used_).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(CheckReport(At("log"), true, used_).ok());
  EXPECT_EQ(CheckReport(At("node0"), true, used_).code(), StatusCode::kAlreadyExists);
  EXPECT_TRUE(CheckReport(At("new/report.html"), false, used_).ok());  // made before it
  for (const char* output : {"nowhere/report.html", "new/nowhere/report.html"}) {
    const Status status = CheckReport(At(output), true, used_);
    EXPECT_EQ(status.code(), StatusCode::kIo) << output;
    EXPECT_EQ(WriteReport(At(output), "page", true).code(), StatusCode::kIo);
  }
  EXPECT_FALSE(fs::exists(At("nowhere")));
}

}  // namespace
}  // namespace reshard
