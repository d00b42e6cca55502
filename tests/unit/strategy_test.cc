#include "src/mindspore/strategy_tables.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/strategy_bytes.h"

namespace reshard::strategy_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

StrategyFile File(const std::vector<NamedLayout>& layouts) {
  return ParsedStrategy("s.ckpt", 0, layouts);
}

StrategyFile StageFileOf(int64_t stage, const std::vector<NamedLayout>& layouts) {
  return ParsedStrategy("stage" + std::to_string(stage) + ".ckpt", stage, layouts);
}

NamedLayout Cut(const std::string& name, std::vector<int64_t> device_matrix) {
  return {name, MakeLayout(std::move(device_matrix), {{0}})};
}

TEST(StrategyTest, SplitsStagePrefixes) {
  using Split = std::pair<int64_t, std::string_view>;
  EXPECT_EQ(SplitStagePrefix("0-w"), Split(0, "w"));
  EXPECT_EQ(SplitStagePrefix("12-layer-norm.weight"), Split(12, "layer-norm.weight"));
  EXPECT_EQ(SplitStagePrefix("007-w"), Split(7, "w"));
  EXPECT_EQ(SplitStagePrefix("3-"), Split(3, ""));
  EXPECT_EQ(SplitStagePrefix("99999999999999999999-w"),
            Split(std::numeric_limits<int64_t>::max(), "w"));
  for (const char* name : {"", "-", "-w", "w", "1", "1w-", "a1-w", " 1-w", "+1-w", "1 -w"}) {
    EXPECT_EQ(SplitStagePrefix(name), std::nullopt) << name;
  }
}

TEST(StrategyTest, OneStage) {
  StrategyFile file = File({Cut("a-b", {2, 4}), Cut("0-c", {8}), Cut("d", {4, 2})});
  file.first_item_stage = 3;
  const auto strategy = StrategyTables::FromFile(file);
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_FALSE(strategy->is_pipeline());
  EXPECT_EQ(strategy->path(), "s.ckpt");
  EXPECT_EQ(strategy->devices_per_stage(), 8);
  EXPECT_EQ(strategy->ranks(), 8);
  EXPECT_EQ(strategy->own_stage(), 3);
  ASSERT_EQ(strategy->stages().size(), 1U);
  EXPECT_THAT(strategy->stages()[0], ElementsAreArray(file.layouts.begin(), file.layouts.end()));
  EXPECT_EQ(*strategy->stages()[0].Find("0-c"), MakeLayout({8}, {{0}}));
  EXPECT_EQ(strategy->stages()[0].Find("c"), nullptr);
  EXPECT_TRUE(strategy->Contains("a-b"));
  EXPECT_FALSE(strategy->Contains("b"));
}

TEST(StrategyTest, APipelineInOneFile) {
  const auto strategy = StrategyTables::FromFile(
      File({Cut("1-x", {4}), Cut("0-x", {2, 2}), Cut("0-layer-norm", {4}), Cut("01-y", {4})}));
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->is_pipeline());
  EXPECT_EQ(strategy->devices_per_stage(), 4);
  EXPECT_EQ(strategy->ranks(), 8);
  ASSERT_EQ(strategy->stages().size(), 2U);
  EXPECT_THAT(strategy->stages()[0], ElementsAre(Cut("x", {2, 2}), Cut("layer-norm", {4})));
  EXPECT_THAT(strategy->stages()[1], ElementsAre(Cut("x", {4}), Cut("y", {4})));
}

TEST(StrategyTest, OfSeveralLayoutsOfOneNameTheLastCounts) {
  // The earlier one is not even counted.
  const auto strategy =
      StrategyTables::FromFile(File({Cut("x", {16}), Cut("y", {4}), Cut("x", {2, 2})}));
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_THAT(strategy->stages()[0], ElementsAre(Cut("x", {2, 2}), Cut("y", {4})));
}

TEST(StrategyTest, AnEmptyDeviceMatrixIsOneDevice) {
  const auto strategy = StrategyTables::FromFile(File({Cut("0-x", {}), Cut("1-x", {1, 1})}));
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(strategy->devices_per_stage(), 1);
  EXPECT_EQ(strategy->ranks(), 2);
}

TEST(StrategyTest, ItsCopiesFindTheirOwnLayouts) {
  std::optional<Strategy> copy;
  {
    const auto strategy = StrategyTables::FromFile(File({Cut("x", {2})}));
    ASSERT_TRUE(strategy.ok());
    copy = *strategy;
  }
  EXPECT_EQ(copy->stages()[0].Find("x"), &copy->stages()[0][0].layout);
}

TEST(StrategyTest, RejectsFiles) {
  std::vector<NamedLayout> stages_apart;
  for (int i = 0; i < 60; i += 2) stages_apart.push_back(Cut(std::to_string(i) + "-x", {2}));
  struct Row {
    const char* name;
    std::vector<NamedLayout> layouts;
    StatusCode code;
    std::string message;
  };
  const Row rows[] = {
      {"device counts of one file",
       {Cut("a", {2, 4}), Cut("b", {8}), Cut("c", {4})},
       StatusCode::kMismatch,
       "s.ckpt: the layouts of this file are for different device counts: parameter \"a\" has 8 "
       "(device matrix [2, 4]), parameter \"c\" has 4 (device matrix [4]); expected one count; is "
       "the file put together from several strategies?"},
      {"device counts of one stage",
       {Cut("0-a", {2}), Cut("1-b", {2}), Cut("1-c", {4})},
       StatusCode::kMismatch,
       "the layouts of stage 1 are for different device counts: parameter "
       "\"b\" has 2 (device matrix [2]), parameter \"c\" has 4 (device matrix [4])"},
      {"device counts of two stages",
       {Cut("0-a", {2}), Cut("1-b", {2, 2})},
       StatusCode::kMismatch,
       "s.ckpt: the stages are for different device counts: in stage 0 parameter \"a\" has 2 "
       "(device matrix [2]), in stage 1 parameter \"b\" has 4 (device matrix [2, 2])"},
      {"an empty matrix beside others",
       {Cut("0-a", {}), Cut("0-b", {2})},
       StatusCode::kMismatch,
       "parameter \"a\" has 1 (device matrix []), parameter \"b\" has 2 (device matrix [2])"},
      {"a stage missing",
       {Cut("0-a", {2}), Cut("2-b", {2})},
       StatusCode::kMismatch,
       "s.ckpt: missing stage 1; found 0, 2, expected 0, 1, 2 and so on"},
      {"the first stages missing",
       {Cut("3-a", {2})},
       StatusCode::kMismatch,
       "missing stages 0-2; found 3,"},
      {"a stage beyond counting",
       {Cut("0-a", {2}), Cut("99999999999-b", {2})},
       StatusCode::kMismatch,
       "missing stages 1-99999999998; found 0, 99999999999,"},
      {"the last number there is",
       {Cut("0-a", {2}), Cut("9223372036854775807-b", {2})},
       StatusCode::kMismatch,
       "missing stages 1-9223372036854775806; found 0, 9223372036854775807,"},
      {"every second stage", stages_apart, StatusCode::kMismatch,
       "missing stages 1, 3, 5, 7, 9, 11, 13, 15 and 21 more; found 0, 2, 4, 6, 8, 10, 12, 14 and "
       "22 more, expected"},
      {"an axis of no devices",
       {Cut("a", {4, 0})},
       StatusCode::kCorrupt,
       "s.ckpt: parameter \"a\": expected device axes of at least 1, found the device matrix [4, "
       "0]"},
      {"an axis below zero",
       {Cut("a", {-1})},
       StatusCode::kCorrupt,
       "expected device axes of at least 1, found the device matrix [-1]"},
      {"more devices than there are",
       {Cut("a", {4096, 4097})},
       StatusCode::kCorrupt,
       "expected at most 1048576 devices, found the device matrix [4096, 4097]"},
      {"a product that overflows",
       {Cut("a", {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()})},
       StatusCode::kCorrupt,
       "expected at most 1048576 devices"},
      {"a product that wraps to 0",
       {Cut("a", {int64_t{1} << 32, int64_t{1} << 32})},
       StatusCode::kCorrupt,
       "expected at most 1048576 devices"},
      {"too many axes",
       {Cut("a", std::vector<int64_t>(65, 1))},
       StatusCode::kCorrupt,
       "s.ckpt: parameter \"a\": expected a device matrix of at most 64 axes, found 65"},
      {"too many ranks",
       {Cut("0-a", {1 << 20}), Cut("1-a", {1 << 20})},
       StatusCode::kCorrupt,
       "s.ckpt: expected at most 1048576 ranks, found 2 stages of 1048576 devices"},
      {"a name to be escaped", {Cut("a\n", {0})}, StatusCode::kCorrupt, "parameter \"a\\n\": "},
  };
  for (const Row& row : rows) {
    const auto strategy = StrategyTables::FromFile(File(row.layouts));
    ASSERT_FALSE(strategy.ok()) << row.name;
    EXPECT_EQ(strategy.status().code(), row.code) << row.name;
    EXPECT_THAT(strategy.status().message(), HasSubstr(row.message)) << row.name;
  }
}

// The ranks of a stage alone begin at its number times its devices.
TEST(StrategyTest, AStageBeyondTheLastRankIsRefused) {
  StrategyFile file = File({Cut("a", {2, 2})});
  file.first_item_stage = kMaxRanks / 4 - 1;
  EXPECT_EQ(StrategyTables::FromFile(file)->own_stage(), kMaxRanks / 4 - 1);
  for (const int64_t stage :
       {kMaxRanks / 4, int64_t{1} << 32, std::numeric_limits<int64_t>::max()}) {
    file.first_item_stage = stage;
    const auto strategy = StrategyTables::FromFile(file);
    EXPECT_EQ(strategy.status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(strategy.status().message(), "s.ckpt: expected at most 1048576 ranks, found stage " +
                                               std::to_string(stage) + " of 4 devices");
  }
}

TEST(StrategyTest, KnowsTheLowestStageOfAName) {
  const auto strategy = StrategyTables::FromFile(
      File({Cut("2-x", {2}), Cut("1-x", {2}), Cut("0-y", {2}), Cut("1-y", {2})}));
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(strategy->LowestStage("x"), 1);
  EXPECT_EQ(strategy->LowestStage("y"), 0);
  EXPECT_EQ(strategy->LowestStage("0-y"), std::nullopt);
  EXPECT_EQ(StrategyTables::FromFile(File({Cut("x", {2})}))->LowestStage("x"), 0);
}

TEST(StrategyTest, TakesDevicesUpToTheLimit) {
  const auto strategy = StrategyTables::FromFile(File({Cut("a", std::vector<int64_t>(20, 2))}));
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_EQ(strategy->ranks(), kMaxRanks);
  EXPECT_TRUE(StrategyTables::FromFile(File({Cut("a", std::vector<int64_t>(64, 1))})).ok());
}

TEST(StrategyTest, JoinsStageFilesOfAnyOrder) {
  const auto strategy = StrategyTables::FromStageFiles(
      "strategies",
      {StageFileOf(1, {Cut("b", {4}), Cut("a", {4})}), StageFileOf(0, {Cut("a", {2, 2})})});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->is_pipeline());
  EXPECT_EQ(strategy->path(), "strategies");
  EXPECT_EQ(strategy->ranks(), 8);
  ASSERT_EQ(strategy->stages().size(), 2U);
  EXPECT_EQ(strategy->stages()[0].path(), "stage0.ckpt");
  EXPECT_THAT(strategy->stages()[0], ElementsAre(Cut("a", {2, 2})));
  EXPECT_THAT(strategy->stages()[1], ElementsAre(Cut("b", {4}), Cut("a", {4})));
  EXPECT_THAT(strategy->notes(), IsEmpty());
}

TEST(StrategyTest, OneStageFileIsAPipelineOfOneStage) {
  const auto strategy =
      StrategyTables::FromStageFiles("strategies", {StageFileOf(0, {Cut("a", {4})})});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->is_pipeline());
  EXPECT_EQ(strategy->stages().size(), 1U);
}

TEST(StrategyTest, SkipsRepeatedAndMergedFilesWithANote) {
  std::vector<StrategyFile> files = {StageFileOf(0, {Cut("a", {2}), Cut("b", {2})}),
                                     StageFileOf(0, {Cut("b", {2}), Cut("a", {2})}),
                                     StageFileOf(0, {Cut("0-a", {2}), Cut("0-b", {2})})};
  files[0].copies = {"copy.ckpt"};
  files[1].path = "again.ckpt";
  files[2].path = "merged.ckpt";
  const auto strategy = StrategyTables::FromStageFiles("strategies", files);
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_THAT(strategy->notes(),
              ElementsAre("strategies: skipped 1 merged strategy file: merged.ckpt",
                          "strategies: skipped 2 strategy files, the same as another of their "
                          "stage"));
}

TEST(StrategyTest, ANoteNamesTheFirstMergedFiles) {
  std::vector<StrategyFile> files = {StageFileOf(0, {Cut("a", {2})})};
  for (int i = 0; i < 25; ++i) {
    files.push_back(StageFileOf(0, {Cut("0-a", {2})}));
    files.back().path = "folder/m" + std::to_string(i);
  }
  const auto strategy = StrategyTables::FromStageFiles("folder", files);
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_THAT(strategy->notes(),
              ElementsAre("folder: skipped 25 merged strategy files: m0, m1, m2 and 22 more"));
}

TEST(StrategyTest, RejectsStageFiles) {
  StrategyFile without_item = StageFileOf(0, {Cut("a", {2})});
  without_item.first_item_stage.reset();
  ParameterLayout sharded = MakeLayout({2}, {{0}});
  sharded.opt_weight_shard_size = 2;
  struct Row {
    const char* name;
    std::vector<StrategyFile> files;
    std::string message;
  };
  const Row rows[] = {
      {"a stage missing",
       {StageFileOf(0, {Cut("a", {2})}), StageFileOf(2, {Cut("a", {2})})},
       "strategies: missing stage 1; found 0, 2,"},
      {"one later stage",
       {StageFileOf(1, {Cut("a", {2})})},
       "strategies: missing stage 0; found 1, expected 0, 1, 2 and so on; give a folder with the "
       "strategy files of all stages (or, to convert one stage alone, its file itself)"},
      {"layouts that differ",
       {StageFileOf(0, {Cut("a", {2})}), StageFileOf(0, {{"a", sharded}})},
       "stage0.ckpt and stage0.ckpt are both of stage 0 but differ: in the layout of \"a\"; remove "
       "the one that is not from this run"},
      {"a parameter more",
       {StageFileOf(0, {Cut("a", {2})}), StageFileOf(0, {Cut("a", {2}), Cut("b", {2})})},
       "differ: only the second has \"b\""},
      {"a parameter less",
       {StageFileOf(0, {Cut("a", {2}), Cut("b", {2})}), StageFileOf(0, {Cut("a", {2})})},
       "differ: only the first has \"b\""},
      {"device counts",
       {StageFileOf(0, {Cut("a", {2})}), StageFileOf(1, {Cut("b", {4})})},
       "strategies: the stages are for different device counts: in stage 0 parameter \"a\" has 2 "
       "(device matrix [2]), in stage 1 parameter \"b\" has 4 (device matrix [4])"},
      {"no strategy item",
       {without_item},
       "stage0.ckpt: found no strategy item, which would tell the file's stage"},
      {"merged ones only",
       {StageFileOf(0, {Cut("0-a", {2})}), StageFileOf(0, {Cut("0-b", {2})})},
       "strategies: expected the strategy files of the stages, found only merged ones"},
  };
  for (const Row& row : rows) {
    const auto strategy = StrategyTables::FromStageFiles("strategies", row.files);
    ASSERT_FALSE(strategy.ok()) << row.name;
    EXPECT_EQ(strategy.status().code(), StatusCode::kMismatch) << row.name;
    EXPECT_THAT(strategy.status().message(), HasSubstr(row.message)) << row.name;
  }
}

}  // namespace
}  // namespace reshard::strategy_test
