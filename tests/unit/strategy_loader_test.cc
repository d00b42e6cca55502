#include "src/mindspore/strategy_loader.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<NamedLayout> kFirst = {{"x", MakeLayout({2, 2}, {{1, -1}})}};
const std::vector<NamedLayout> kSecond = {{"y", MakeLayout({4}, {{0}})}};

void ExpectError(const Status& status, StatusCode code, const std::string& message) {
  EXPECT_EQ(status.code(), code) << message;
  EXPECT_THAT(status.message(), HasSubstr(message));
}

TEST(StrategyLoaderTest, LoadsAFileOfAnyNameAndEncoding) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.Write("a.json", ProtobufStrategy(3, kFirst)),
                                  folder.Write("b.ckpt", JsonStrategy(3, kFirst)),
                                  folder.Write("c", JsonStrategy(3, kFirst))}) {
    const auto strategy = LoadStrategy(path);
    ASSERT_TRUE(strategy.ok()) << strategy.status().message();
    EXPECT_EQ(strategy->path(), path);
    EXPECT_FALSE(strategy->is_pipeline());
    EXPECT_EQ(strategy->own_stage(), 3);
    EXPECT_EQ(strategy->stages()[0].layouts(), kFirst);
  }
}

TEST(StrategyLoaderTest, JoinsTheStageFilesOfAFolder) {
  const TemporaryFolder folder;
  folder.Write("ckpt_strategy_rank_0.ckpt", ProtobufStrategy(1, kSecond));
  folder.Write("ckpt_strategy_rank_1.ckpt", ProtobufStrategy(1, kSecond));
  folder.Write("z.json", ProtobufStrategy(0, kFirst));
  folder.Write(".hidden.ckpt", "garbage");
  folder.Write("group_info.pb", "garbage");
  folder.Write("readme", "garbage");
  folder.Write("below.ckpt/more.ckpt", "garbage");
  std::filesystem::create_symlink("nowhere", folder.path() / "link.ckpt");
  const auto strategy = LoadStrategy(folder.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->is_pipeline());
  EXPECT_EQ(strategy->path(), folder.path().string());
  ASSERT_EQ(strategy->stages().size(), 2U);
  EXPECT_EQ(strategy->stages()[0].layouts(), kFirst);
  EXPECT_EQ(strategy->stages()[0].path(), (folder.path() / "z.json").string());
  EXPECT_EQ(strategy->stages()[1].layouts(), kSecond);
  EXPECT_THAT(strategy->notes(),
              ElementsAre("skipped 1 strategy file, the same as another of their stage: " +
                          (folder.path() / "ckpt_strategy_rank_1.ckpt").string()));
}

TEST(StrategyLoaderTest, JoinsJsonStagesToo) {
  const TemporaryFolder folder;
  folder.Write("0.json", JsonStrategy(0, kFirst));
  folder.Write("1.json", JsonStrategy(1, kSecond));
  const auto strategy = LoadStrategy(folder.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(strategy->ranks(), 8);
}

TEST(StrategyLoaderTest, AMergedFileBesideItsStagesIsSkippedAndAloneIsTaken) {
  const TemporaryFolder folder;
  folder.Write("0.ckpt", ProtobufStrategy(0, kFirst));
  folder.Write("1.ckpt", ProtobufStrategy(1, kSecond));
  const auto merged = MergeStrategyFolder(folder.path().string());
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_THAT(merged->notes, IsEmpty());
  folder.Write("merged_ckpt_strategy.ckpt", merged->bytes);
  const auto again = MergeStrategyFolder(folder.path().string());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->bytes, merged->bytes);
  EXPECT_THAT(again->notes, ElementsAre("skipped 1 strategy file, merged already: " +
                                        (folder.path() / "merged_ckpt_strategy.ckpt").string()));

  const TemporaryFolder alone;
  const std::string path = alone.Write("merged.ckpt", merged->bytes);
  const auto strategy = LoadStrategy(alone.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(strategy->path(), path);
  EXPECT_EQ(strategy->stages().size(), 2U);
}

TEST(StrategyLoaderTest, OneStageFileIsAPipelineOfOneStage) {
  const TemporaryFolder folder;
  folder.Write("0.ckpt", ProtobufStrategy(0, kFirst));
  const auto strategy = LoadStrategy(folder.path().string());
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->is_pipeline());
  EXPECT_EQ(strategy->ranks(), 4);
}

TEST(StrategyLoaderTest, RejectsWhatIsNoStrategy) {
  const TemporaryFolder folder;
  const std::string base = folder.path().string();
  const std::string weights = folder.Write("w/w.ckpt", TensorValue("w", "Int8", {1}, "x"));
  std::filesystem::create_directory(folder.path() / "empty");
  folder.Write("mixed/a.ckpt", ProtobufStrategy(0, kFirst));
  folder.Write("mixed/b.json", JsonStrategy(1, kSecond));
  folder.Write("ranks/rank_0/net.ckpt", TensorValue("w", "Int8", {1}, "x"));
  folder.Write("later/1.ckpt", ProtobufStrategy(1, kFirst));
  struct Row {
    std::string path;
    StatusCode code;
    std::string message;
  };
  const Row rows[] = {
      {base + "/none", StatusCode::kNotFound,
       base + "/none: expected a strategy file or a folder with the strategy files of all stages, "
              "found nothing"},
      {base + "/empty", StatusCode::kNotFound,
       base + "/empty: expected a folder with the strategy files of all stages (*.ckpt or *.json), "
              "found none in it"},
      {base + "/ranks", StatusCode::kNotFound, "found none in it"},
      {base + "/mixed", StatusCode::kMismatch, "b.json is JSON and "},
      {base + "/later", StatusCode::kMismatch, base + "/later: missing stage 0"},
      {weights, StatusCode::kCorrupt, weights + ": expected a strategy file, found a MindSpore"},
      {base + "/w", StatusCode::kCorrupt,
       weights + ": expected a strategy file, found a MindSpore"},
      {"/dev/null", StatusCode::kCorrupt, "/dev/null: expected a regular file, found a device"},
  };
  for (const Row& row : rows) {
    ExpectError(LoadStrategy(row.path).status(), row.code, row.message);
  }
  ExpectError(MergeStrategyFolder(base + "/none").status(), StatusCode::kNotFound, "found nothing");
  ExpectError(MergeStrategyFolder(weights).status(), StatusCode::kNotFound,
              "expected a folder with the strategy files of all stages, found a file");
  ExpectError(MergeStrategyFolder(base + "/empty").status(), StatusCode::kNotFound,
              "found none in it");
  ExpectError(MergeStrategyFolder(base + "/mixed").status(), StatusCode::kMismatch,
              "b.json is JSON and ");
}

TEST(StrategyLoaderTest, HugeFilesAreToldByTheirHead) {
  const TemporaryFolder folder;
  constexpr uint64_t kSize = uint64_t{3} << 30;
  const std::string weights = folder.WriteSparse(
      "w.ckpt", kSize, 0, TensorValueHeader("w", "Int8", {1 << 30}, uint64_t{1} << 30));
  ExpectError(LoadStrategy(weights).status(), StatusCode::kCorrupt,
              "found a MindSpore checkpoint (weights)");
  const std::string zeros = folder.WriteSparse("zeros", kSize, 0, "");
  ExpectError(LoadStrategy(zeros).status(), StatusCode::kCorrupt,
              "expected a strategy file, of at most 134217728 bytes, found 3221225472 bytes");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 1 << 20) << "KiB: the files were read";
}

}  // namespace
}  // namespace reshard
