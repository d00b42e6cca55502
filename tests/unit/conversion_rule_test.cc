// Which parameters a target rank gets: each sentence of docs/reference/layouts.md.
#include "src/mindspore/conversion_rule.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/strategy_bytes.h"

namespace reshard::conversion_rule_test {
namespace {

using testing::ElementsAre;

constexpr auto kConvert = ConversionRule::Fate::kConvert;
constexpr auto kCopy = ConversionRule::Fate::kCopy;
constexpr auto kDrop = ConversionRule::Fate::kDrop;

// One file's strategy of these parameters, none of them cut, on `devices` devices a stage.
Strategy MakeStrategy(int64_t devices, const std::vector<std::string>& names, int64_t stage = 0) {
  StrategyFile file = {"s.ckpt", stage, {}, {}};
  for (const std::string& name : names) {
    file.layouts.push_back(NamedLayout{name, MakeLayout({devices}, {{-1}})});
  }
  return StrategyTables::FromFile(std::move(file)).value();
}

TEST(ConversionRuleTest, WithoutPipelinesWhatBothStrategiesHaveIsConvertedAndTheRestCopied) {
  const Strategy source = MakeStrategy(4, {"both", "a", "only_source"});
  const Strategy target = MakeStrategy(6, {"both", "a", "only_target"});
  const ConversionRule rule(&source, &target);
  EXPECT_EQ(rule.FateOf("both", 0), kConvert);
  EXPECT_EQ(rule.FateOf("only_source", 0), kCopy);
  EXPECT_EQ(rule.FateOf("only_target", 0), kCopy);
  EXPECT_EQ(rule.FateOf("in_none", 0), kCopy);
  EXPECT_TRUE(rule.Unmatched("only_source"));
  EXPECT_TRUE(rule.Unmatched("only_target"));
  EXPECT_FALSE(rule.Unmatched("both"));
  EXPECT_FALSE(rule.Unmatched("in_none"));
  EXPECT_EQ(rule.stage_alone(), std::nullopt);
  EXPECT_EQ(rule.target_ranks(), 6);
  EXPECT_EQ(rule.source_stages(), 1);
  EXPECT_THAT(rule.NeededSourceStages(0), ElementsAre(0));
  // Copies come from source rank l % n.
  for (const auto& [rank, from] : {std::pair(0, 0), {3, 3}, {4, 0}, {5, 1}}) {
    EXPECT_EQ(rule.TargetStage(rank), 0);
    EXPECT_EQ(rule.CopyRank(rank), from);
  }
}

TEST(ConversionRuleTest, WithoutASourceStrategyRank0HoldsFullTensors) {
  const Strategy target = MakeStrategy(2, {"0-a", "1-b"});
  const ConversionRule rule(nullptr, &target);
  EXPECT_EQ(rule.target_ranks(), 4);
  EXPECT_EQ(rule.source_devices(), 1);
  EXPECT_EQ(rule.source_stages(), 1);
  EXPECT_THAT(rule.NeededSourceStages(1), ElementsAre(0));
  EXPECT_EQ(rule.SourceRank(0, 0), 0);
  EXPECT_EQ(rule.CopyRank(3), 0);
  EXPECT_EQ(rule.FateOf("a", 0), kConvert);
  EXPECT_EQ(rule.FateOf("b", 0), kDrop);
  EXPECT_EQ(rule.FateOf("a", 1), kDrop);
  EXPECT_EQ(rule.FateOf("in_none", 1), kCopy);
  EXPECT_FALSE(rule.Unmatched("in_none"));
}

TEST(ConversionRuleTest, WithoutATargetStrategyOneRankGetsFullTensors) {
  const Strategy source = MakeStrategy(2, {"0-a", "1-b"});
  const ConversionRule rule(&source, nullptr);
  EXPECT_EQ(rule.target_ranks(), 1);
  EXPECT_THAT(rule.NeededSourceStages(0), ElementsAre(0, 1));
  EXPECT_EQ(rule.FateOf("a", 0), kConvert);
  EXPECT_EQ(rule.FateOf("b", 0), kConvert);
  EXPECT_EQ(rule.FateOf("in_none", 0), kCopy);
  EXPECT_EQ(rule.LowestSourceStage("b"), 1);
}

TEST(ConversionRuleTest, TheDevicesOfAStageAreTheProductOfItsMatrix) {
  const Strategy source = MakeStrategy(4, {"0-a", "1-a"});
  const Strategy target = MakeStrategy(3, {"0-a", "1-a", "2-a"});
  const ConversionRule rule(&source, &target);
  EXPECT_EQ(rule.target_ranks(), 9);
  EXPECT_EQ(rule.source_devices(), 4);
  EXPECT_EQ(rule.TargetStage(7), 2);
  EXPECT_EQ(rule.TargetLocalRank(7), 1);
  EXPECT_EQ(rule.SourceRank(1, 3), 7);
  // The values and the layout of what is in several source stages are those of the lowest.
  EXPECT_EQ(rule.LowestSourceStage("a"), 0);
}

// S = {a, b, shared, gone} in two stages, D = {a, b, shared, fresh} in two others.
class PipelineRuleTest : public testing::Test {
 protected:
  const Strategy source_ = MakeStrategy(2, {"0-a", "0-shared", "1-shared", "1-b", "1-gone"});
  const Strategy target_ = MakeStrategy(2, {"0-b", "0-fresh", "1-a", "1-shared"});
  const ConversionRule rule_{&source_, &target_};
};

TEST_F(PipelineRuleTest, AStageGetsWhatItsTargetStageHas) {
  EXPECT_EQ(rule_.FateOf("b", 0), kConvert);
  EXPECT_EQ(rule_.FateOf("a", 1), kConvert);
  EXPECT_EQ(rule_.FateOf("shared", 1), kConvert);
}

TEST_F(PipelineRuleTest, WhatAnotherTargetStageConvertsIsDropped) {
  EXPECT_EQ(rule_.FateOf("a", 0), kDrop);
  EXPECT_EQ(rule_.FateOf("shared", 0), kDrop);
  EXPECT_EQ(rule_.FateOf("b", 1), kDrop);
}

TEST_F(PipelineRuleTest, WhatOneStrategyHasIsCopiedToEveryStage) {
  for (const int64_t stage : {0, 1}) {
    EXPECT_EQ(rule_.FateOf("gone", stage), kCopy) << stage;
    EXPECT_EQ(rule_.FateOf("fresh", stage), kCopy) << stage;
    EXPECT_EQ(rule_.FateOf("in_none", stage), kCopy) << stage;
  }
}

TEST_F(PipelineRuleTest, SourceStagesAreNeededForWhatIsConvertedOrUnmatched) {
  EXPECT_THAT(rule_.NeededSourceStages(0), ElementsAre(1));     // b, gone
  EXPECT_THAT(rule_.NeededSourceStages(1), ElementsAre(0, 1));  // a, shared; shared, gone
}

TEST(ConversionRuleTest, ASourceStageOfOtherTargetStagesIsNotNeeded) {
  const Strategy source = MakeStrategy(2, {"0-a", "1-b", "2-c"});
  const Strategy target = MakeStrategy(2, {"0-a", "0-c", "1-b"});
  const ConversionRule rule(&source, &target);
  EXPECT_THAT(rule.NeededSourceStages(0), ElementsAre(0, 2));
  EXPECT_THAT(rule.NeededSourceStages(1), ElementsAre(1));
}

TEST(ConversionRuleTest, ATargetStageWithoutACommonParameterNeedsNoStage) {
  const Strategy source = MakeStrategy(1, {"0-a", "1-b"});
  const Strategy target = MakeStrategy(1, {"0-a", "0-b", "1-fresh"});
  EXPECT_TRUE(ConversionRule(&source, &target).NeededSourceStages(1).empty());
}

struct StageAloneRow {
  const char* name;
  int64_t own_stage;
  std::vector<std::string> source;
  std::vector<std::string> target;
  std::optional<int64_t> stage_alone;
};

TEST(ConversionRuleTest, OneStageAlone) {
  const std::vector<StageAloneRow> rows = {
      {"a proper subset", 2, {"a", "b"}, {"a", "b", "c"}, 2},
      {"an ordinary source whose target has more", 0, {"a"}, {"a", "b"}, 0},
      {"the same parameters", 1, {"a", "b"}, {"b", "a"}, std::nullopt},
      {"one that the target lacks", 1, {"a", "x"}, {"a", "b", "c"}, std::nullopt},
      {"only the optimizer's are more",
       1,
       {"a"},
       {"a", "adam_m.a", "adam_v.a", "accu_grads.a"},
       std::nullopt},
      {"the optimizer's are left aside in the source",
       1,
       {"a", "adam_m.x", "adam_v.x", "accu_grads.x"},
       {"a", "b"},
       1},
      {"other optimizers count", 1, {"a", "moments.a"}, {"a", "b"}, std::nullopt},
      {"a merged strategy of one stage", 1, {"0-a"}, {"0-a", "0-b"}, 1},
      {"the source has stages", 1, {"0-a", "1-b"}, {"a", "b", "c"}, std::nullopt},
      {"the target has stages", 1, {"a"}, {"0-a", "1-b"}, std::nullopt},
  };
  for (const StageAloneRow& row : rows) {
    const Strategy source = MakeStrategy(4, row.source, row.own_stage);
    const Strategy target = MakeStrategy(2, row.target);
    const ConversionRule rule(&source, &target);
    EXPECT_EQ(rule.stage_alone(), row.stage_alone) << row.name;
    EXPECT_EQ(rule.SourceRank(0, 1), 1 + 4 * row.stage_alone.value_or(0)) << row.name;
  }
}

TEST(ConversionRuleTest, OneStageAloneTakesBothStrategies) {
  const Strategy strategy = MakeStrategy(4, {"a"}, 3);
  EXPECT_EQ(ConversionRule(&strategy, nullptr).stage_alone(), std::nullopt);
  EXPECT_EQ(ConversionRule(nullptr, &strategy).stage_alone(), std::nullopt);
}

}  // namespace
}  // namespace reshard::conversion_rule_test
