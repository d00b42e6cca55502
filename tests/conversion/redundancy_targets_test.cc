// Targets without redundancy: of the ranks that hold the same shard, one writes it.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "reshard/checkpoint.h"
#include "reshard/compare.h"
#include "reshard/convert.h"
#include "reshard/target_view.h"
#include "reshard/verify.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/folder_contents.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::redundancy_targets_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two replicas of two parts, and a vector that all ranks hold.
const std::vector<NamedLayout> kLayouts = {{"a", MakeLayout({2, 2}, {{0, -1}})},
                                           {"b", MakeLayout({2, 2}, {{0, -1}})},
                                           {"v", MakeLayout({4}, {{-1}})}};

class RedundancyTargetsTest : public testing::Test {
 protected:
  RedundancyTargetsTest() : folder_(kLayouts, kLayouts) {
    folder_.WriteStage(tensors_, kLayouts, 4);
    options().target.removes_redundancy = true;
  }

  ConvertOptions& options() { return folder_.options(); }
  void Run() {
    const auto report = Convert(options());
    ASSERT_TRUE(report.ok()) << report.status().message();
    notes_ = report->notes;
  }
  // The names in the file of a target rank.
  std::vector<std::string> Names(int64_t rank) const {
    std::vector<std::string> names;
    for (const TestTensor& tensor : folder_.Target(rank)) names.push_back(tensor.name);
    return names;
  }

  const std::vector<TestTensor> tensors_ = {
      MakeTensor("a", DType::kFloat32, {4, 3}), MakeTensor("b", DType::kFloat16, {8}),
      MakeTensor("v", DType::kInt32, {5}), MakeTensor("of_no_layout", DType::kFloat32, {1})};
  ConversionFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(RedundancyTargetsTest, RanksTakeTurns) {
  Run();
  EXPECT_THAT(Names(0), ElementsAre("a", "v", "of_no_layout"));
  EXPECT_THAT(Names(1), ElementsAre("a", "of_no_layout"));
  EXPECT_THAT(Names(2), ElementsAre("b", "of_no_layout"));
  EXPECT_THAT(Names(3), ElementsAre("b", "of_no_layout"));
  EXPECT_THAT(notes_, testing::Contains(HasSubstr("cannot state that redundancy is removed")));
}

TEST_F(RedundancyTargetsTest, TheResultIsASource) {
  Run();
  DiffOptions diff{{.source = options().source}, options().source};
  diff.b.path = options().target.folder;
  const auto equal = Diff(diff);
  ASSERT_TRUE(equal.ok()) << equal.status().message();
  EXPECT_TRUE(equal->equal());

  ConvertOptions back = options();
  back.source.path = options().target.folder;
  back.target.folder = folder_.folder().path() / "back";
  back.target.removes_redundancy = false;
  const auto report = Convert(back);
  ASSERT_TRUE(report.ok()) << report.status().message();
  for (const int64_t rank : {0, 1, 2, 3}) {
    // No file has the order of all parameters.
    const auto tensors = ReadTensors(options().source.path + "/" + RankPath(rank));
    EXPECT_THAT(ReadTensors(back.target.folder + "/rank_" + std::to_string(rank) + "/checkpoint_" +
                            std::to_string(rank) + ".ckpt"),
                testing::UnorderedElementsAreArray(tensors))
        << rank;
  }
}

TEST_F(RedundancyTargetsTest, IsProvedWithTheRecordedOptions) {
  Run();
  ConversionSpec against;
  against.source.path = options().source.path;
  against.target.folder = options().target.folder;
  const auto report = VerifyAgainst(against);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->differences.empty());
  EXPECT_THAT(report->from_origin, testing::Contains("removes_redundancy"));
}

TEST_F(RedundancyTargetsTest, IsAPlanOfItsOwn) {
  Run();
  options().target.removes_redundancy = false;
  const auto report = Convert(options());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), StatusCode::kAlreadyExists);
}

TEST_F(RedundancyTargetsTest, SingleRanksAndSharesMakeTheSameSet) {
  Run();
  const FolderContents all = ReadFolder(options().target.folder);
  options().target.folder = folder_.folder().path() / "ranks";
  for (const int64_t rank : {2, 0, 3, 1}) {
    options().selection.ranks = {rank};
    Run();
  }
  options().selection.ranks = {};
  const FolderContents by_rank = ReadFolder(options().target.folder);
  options().target.folder = folder_.folder().path() / "shares";
  for (const uint64_t index : {uint64_t{0}, uint64_t{1}}) {
    options().shard = WorkerShare{index, 2};
    Run();
  }
  const FolderContents by_share = ReadFolder(options().target.folder);
  for (const auto& [path, bytes] : all) {
    EXPECT_EQ(by_rank.at(path), bytes) << path;
    EXPECT_EQ(by_share.at(path), bytes) << path;
  }
}

TEST_F(RedundancyTargetsTest, SafetensorsFilesSaySo) {
  options().target.format = TargetFormat::kSafetensors;
  Run();
  EXPECT_THAT(notes_, testing::Not(testing::Contains(HasSubstr("redundancy"))));
  const FolderContents files = ReadFolder(options().target.folder);
  for (const int64_t rank : {0, 1, 2, 3}) {
    const std::string number = std::to_string(rank);
    EXPECT_THAT(files.at("rank_" + number + "/checkpoint_" + number + ".safetensors"),
                HasSubstr(R"("remove_redundancy":"True")"));
  }
}

TEST_F(RedundancyTargetsTest, NeedsRanksThatHoldTheSame) {
  options().target.strategy = {};
  EXPECT_THAT(Convert(options()).status().message(), HasSubstr("`removes_redundancy` needs"));
  options().target.format = TargetFormat::kUnified;
  EXPECT_EQ(Convert(options()).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(RedundancyTargetsTest, LeftOutParametersKeepTheTurns) {
  options().selection.exclude = {"a"};
  Run();
  EXPECT_THAT(Names(0), ElementsAre("v", "of_no_layout"));
  EXPECT_THAT(Names(2), ElementsAre("b", "of_no_layout"));
}

}  // namespace
}  // namespace reshard::redundancy_targets_test
