// Strategies that are made in memory, and what ranks hold under them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "tests/support/temporary_folder.h"

namespace reshard::made_strategy_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

NamedLayout Layout(std::string name, std::vector<int64_t> device_matrix,
                   std::vector<int64_t> tensor_map) {
  return {std::move(name),
          {.device_matrix = std::move(device_matrix), .tensor_map = {std::move(tensor_map)}}};
}

std::vector<std::vector<NamedLayout>> TwoStages() {
  NamedLayout head = Layout("head", {2, 2}, {0, -1});
  head.layout.opt_weight_shard_step = 2;
  head.layout.opt_weight_shard_size = 2;
  return {{Layout("embedding", {2, 2}, {1})}, {head}};
}

TEST(MadeStrategy, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const auto made = Strategy::MakePipeline(TwoStages());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->path(), "the strategy");
  for (const char* name : {"s.json", "s.ckpt"}) {
    const std::string path = (folder.path() / name).string();
    ASSERT_TRUE(WriteStrategy(*made, path, /*force=*/false).ok());
    const auto read = ReadStrategy(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->path(), path);
    for (const Strategy& strategy : {*made, *read}) {
      EXPECT_TRUE(strategy.is_pipeline());
      EXPECT_EQ(strategy.devices_per_stage(), 4);
      EXPECT_EQ(strategy.ranks(), 8);
      EXPECT_EQ(strategy.layouts(), 2U);
      ASSERT_EQ(strategy.stages().size(), 2U);
      for (const Strategy::Stage& stage : strategy.stages()) {
        EXPECT_THAT(stage, ElementsAreArray(TwoStages()[static_cast<size_t>(stage.number())]));
      }
    }

    EXPECT_EQ(WriteStrategy(*read, path, /*force=*/false).code(), StatusCode::kAlreadyExists);
    EXPECT_TRUE(WriteStrategy(*read, path, /*force=*/true).ok());
  }
}

TEST(MadeStrategy, KeepsTheStageThatAFileIsOf) {
  const TemporaryFolder folder;
  const std::vector<NamedLayout> layouts = {Layout("w", {4}, {0})};
  const std::string path = (folder.path() / "stage3.ckpt").string();
  ASSERT_TRUE(WriteStrategy(Strategy::Make(layouts, 3).value(), path, /*force=*/false).ok());
  const auto read = ReadStrategy(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->own_stage(), 3);
  EXPECT_EQ(read->stages().front().number(), 0);
  EXPECT_EQ(Strategy::Make(layouts, -1).status().code(), StatusCode::kInvalidArgument);
}

// It goes through functions, containers and moves, and stays valid.
TEST(MadeStrategy, CopiesShareTheLayouts) {
  Strategy strategy = Strategy::Make({Layout("w", {4}, {0})}).value();
  const Strategy copy = strategy;
  const Strategy moved = std::move(strategy);
  const ParameterLayout* const layout = copy.stages()[0].Find("w");
  ASSERT_NE(layout, nullptr);
  EXPECT_EQ(moved.stages()[0].Find("w"), layout);
  EXPECT_EQ(strategy.stages()[0].Find("w"), layout);  // NOLINT(bugprone-use-after-move): it copies
}

// As files of MindSpore have them: an empty list behind the only one of a nested map.
TEST(MadeStrategy, EmptyListsOfATensorMapAreLeftOut) {
  const auto strategy =
      Strategy::Make({{"w", {.device_matrix = {2, 2}, .tensor_map = {{0, 1}, {}}}},
                      {"step", {.device_matrix = {4}, .tensor_map = {{}}}}});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_THAT(strategy->stages()[0],
              ElementsAre(Layout("w", {2, 2}, {0, 1}), Layout("step", {4}, {})));
}

TEST(MadeStrategy, IsRefusedWhereNoFileCouldSayIt) {
  EXPECT_EQ(Strategy::Make({}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Strategy::MakePipeline({}).status().code(), StatusCode::kInvalidArgument);
  const auto of_one_stage = Strategy::MakePipeline({{}, TwoStages()[1]});
  EXPECT_EQ(of_one_stage.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Strategy::Make({{"w", {.device_matrix = {2}}}}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Strategy::Make({Layout("0-w", {2}, {0})}).status().code(), StatusCode::kMismatch)
      << "it would be read as a pipeline's";
  EXPECT_EQ(Strategy::Make({Layout(std::string(2 << 20, 'w'), {2}, {0})}).status().code(),
            StatusCode::kInvalidArgument);
  for (const std::vector<int64_t>& matrix :
       {std::vector<int64_t>{0}, {-2}, {int64_t{1} << 40}, {1 << 20, 1 << 20}}) {
    EXPECT_EQ(Strategy::Make({Layout("w", matrix, {0})}).status().code(), StatusCode::kCorrupt);
  }
  EXPECT_EQ(Strategy::Make({Layout("w", {2}, {0}), Layout("v", {4}, {0})}).status().code(),
            StatusCode::kMismatch);
}

// JSON is read with numbers that protobuf has no place for, and a value takes more than a file.
TEST(MadeStrategy, IsNotWrittenWhereItWouldNotBeRead) {
  const TemporaryFolder folder;
  const auto refused = [&folder](const ParameterLayout& layout) {
    const auto strategy = Strategy::Make({{"w", layout}});
    EXPECT_TRUE(strategy.ok()) << strategy.status().message();
    return WriteStrategy(*strategy, (folder.path() / "s.ckpt").string(), /*force=*/true).code();
  };
  EXPECT_EQ(
      refused(
          {.device_matrix = {2}, .tensor_map = {{0}}, .opt_weight_shard_step = int64_t{1} << 40}),
      StatusCode::kMismatch);
  EXPECT_EQ(
      refused({.device_matrix = {2}, .tensor_map = {std::vector<int64_t>(size_t{1} << 20, -1)}}),
      StatusCode::kMismatch);
}

TEST(ShardBox, IsWhatARankHolds) {
  const NamedLayout columns = Layout("7-w", {2, 4}, {-1, 0});
  const auto box = ShardBox(columns, {6, 8}, 5);
  ASSERT_TRUE(box.ok()) << box.status().message();
  EXPECT_EQ(ToString(*box), "[0:6, 2:4]");
  EXPECT_EQ(ShardBox(columns, {6, 8}, 8).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ShardBox(columns, {6, 8}, -1).status().code(), StatusCode::kInvalidArgument);
  const auto uneven = ShardBox(columns, {6, 7}, 0);
  EXPECT_EQ(uneven.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(uneven.status().message(), HasSubstr("7-w"));
  EXPECT_EQ(ShardBox(columns, {6}, 0).status().code(), StatusCode::kMismatch);
}

}  // namespace
}  // namespace reshard::made_strategy_test
