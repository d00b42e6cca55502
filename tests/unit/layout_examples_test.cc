// The worked examples of docs/reference/layouts.md, number by number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reshard/strategy.h"
#include "src/mindspore/conversion_rule.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/rank_list.h"
#include "src/source/shard_grid.h"
#include "src/tensor/block_copy.h"
#include "src/tensor/byte_box.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::layout_examples_test {
namespace {

using ::testing::ElementsAre;

ParameterLayout Layout(std::vector<int64_t> matrix, std::vector<int64_t> map, int64_t step = 0,
                       int64_t size = 0) {
  ParameterLayout layout;
  layout.device_matrix = std::move(matrix);
  layout.tensor_map = {std::move(map)};
  layout.opt_weight_shard_step = step;
  layout.opt_weight_shard_size = size;
  return layout;
}

Strategy MakeStrategy(const std::vector<NamedLayout>& layouts) {
  auto strategy = StrategyTables::FromFile(ParsedStrategy("example", 0, layouts));
  EXPECT_TRUE(strategy.ok()) << strategy.status().message();
  return *std::move(strategy);
}

std::vector<std::string> Boxes(const ParameterLayout& layout, const Shape& full) {
  const auto grid = MakeGrid(layout, full.size(), "example");
  EXPECT_TRUE(grid.ok()) << grid.status().message();
  const auto shard = grid->ShardShape(full, "example");
  EXPECT_TRUE(shard.ok()) << shard.status().message();
  std::vector<std::string> boxes;
  for (int64_t rank = 0; rank < grid->devices(); ++rank) {
    boxes.push_back(ToString(grid->BoxOf(rank, *shard)));
  }
  return boxes;
}

std::vector<int64_t> Ranks(const Strategy& source, const Strategy& target, int64_t rank) {
  const auto ranks = RankList(ConversionRule(&source, &target), rank);
  EXPECT_TRUE(ranks.ok()) << ranks.status().message();
  return *ranks;
}

// The copy of what a source box and a target box share, in Float32.
BlockCopy Copy(const Box& source, const Box& target) {
  const Box from = ToByteBox(source, DType::kFloat32);
  const Box to = ToByteBox(target, DType::kFloat32);
  return MakeBlockCopy(*Intersect(from, to), {from, 0}, {to, 0});
}

const Box kSource0{{0, 0}, {784, 256}};
const Box kSource2{{0, 256}, {784, 256}};
const Box kTarget0{{0, 0}, {196, 512}};

TEST(LayoutExamplesTest, EightCardsToFourWithOptimizerParallel) {
  const ParameterLayout layer1 = Layout({2, 1, 2, 2}, {2, 1});
  const ParameterLayout layer3 = Layout({2, 2, 1, 2}, {2, 1});
  const ParameterLayout target = Layout({2, 2, 1}, {1, 0}, 2, 2);
  const std::string left = "[0:784, 0:256]";
  const std::string right = "[0:784, 256:512]";
  EXPECT_THAT(Boxes(layer1, {784, 512}),
              ElementsAre(left, left, right, right, left, left, right, right));
  const std::string top = "[0:256, 0:10]";
  const std::string bottom = "[256:512, 0:10]";
  EXPECT_THAT(Boxes(layer3, {512, 10}),
              ElementsAre(top, top, bottom, bottom, top, top, bottom, bottom));
  EXPECT_THAT(Boxes(target, {784, 512}), ElementsAre("[0:196, 0:512]", "[392:588, 0:512]",
                                                     "[196:392, 0:512]", "[588:784, 0:512]"));
  EXPECT_THAT(Boxes(target, {512, 10}), ElementsAre("[0:128, 0:10]", "[256:384, 0:10]",
                                                    "[128:256, 0:10]", "[384:512, 0:10]"));

  for (const Box& source : {kSource0, kSource2}) {
    const BlockCopy copy = Copy(source, kTarget0);
    EXPECT_EQ(copy.run_length, 1024u);
    EXPECT_THAT(copy.dims, ElementsAre(CopyDim{196, 1024, 2048}));
  }
  const BlockCopy rows = Copy({{0, 0}, {256, 10}}, {{0, 0}, {128, 10}});
  EXPECT_EQ(rows.run_length, 5120u);
  EXPECT_TRUE(rows.dims.empty());

  EXPECT_THAT(Ranks(MakeStrategy({{"layer1.weight", layer1}, {"layer3.weight", layer3}}),
                    MakeStrategy({{"layer1.weight", target}, {"layer3.weight", target}}), 0),
              ElementsAre(0, 2));
}

TEST(LayoutExamplesTest, TwoPipelineStagesOfFourToFourCards) {
  const ParameterLayout rows = Layout({4}, {0, -1});
  const ParameterLayout columns = Layout({4}, {-1, 0});
  EXPECT_EQ(Boxes(rows, {16, 8})[1], "[4:8, 0:8]");
  EXPECT_EQ(Boxes(columns, {16, 8})[1], "[0:16, 2:4]");
  const Strategy source = MakeStrategy({{"0-decoder.weight", rows}, {"1-head.weight", rows}});
  const Strategy target = MakeStrategy({{"decoder.weight", columns}, {"head.weight", columns}});
  EXPECT_THAT(Ranks(source, target, 1), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  const ConversionRule rule(&source, &target);
  EXPECT_THAT(rule.NeededSourceStages(0), ElementsAre(0, 1));
  EXPECT_EQ(rule.SourceRank(0, rule.CopyRank(1)), 1);
  EXPECT_EQ(rule.FateOf("global_step", 0), ConversionRule::Fate::kCopy);
  EXPECT_EQ(rule.LowestSourceStage("head.weight"), 1);
}

TEST(LayoutExamplesTest, WeightAndMomentsFromFourDevicesToTwo) {
  const ParameterLayout four = Layout({4}, {0, -1});
  const ParameterLayout two = Layout({2}, {0, -1});
  EXPECT_THAT(Boxes(four, {8, 8}),
              ElementsAre("[0:2, 0:8]", "[2:4, 0:8]", "[4:6, 0:8]", "[6:8, 0:8]"));
  EXPECT_THAT(Boxes(two, {8, 8}), ElementsAre("[0:4, 0:8]", "[4:8, 0:8]"));
  const BlockCopy copy = Copy({{2, 0}, {2, 8}}, {{0, 0}, {4, 8}});
  EXPECT_EQ(copy.run_length, 64u);
  EXPECT_EQ(copy.target_offset, 64u);
  EXPECT_TRUE(copy.dims.empty());
  const Strategy source = MakeStrategy({{"weight", four}, {"moments.weight", four}});
  const Strategy target = MakeStrategy({{"weight", two}, {"moments.weight", two}});
  EXPECT_THAT(Ranks(source, target, 0), ElementsAre(0, 1));
  EXPECT_THAT(Ranks(source, target, 1), ElementsAre(1, 2, 3));
}

}  // namespace
}  // namespace reshard::layout_examples_test
