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

namespace reshard {
namespace {

using testing::HasSubstr;

StrategyParameter Layout(int64_t stage, std::string name, std::vector<int64_t> device_matrix,
                         std::vector<int64_t> tensor_map) {
  StrategyParameter layout;
  layout.stage = stage;
  layout.name = std::move(name);
  layout.device_matrix = std::move(device_matrix);
  layout.tensor_map = {std::move(tensor_map)};
  return layout;
}

Strategy TwoStages() {
  Strategy strategy;
  strategy.is_pipeline = true;
  strategy.parameters = {Layout(1, "head", {2, 2}, {0, -1}), Layout(0, "embedding", {2, 2}, {1})};
  strategy.parameters.front().opt_weight_shard_step = 2;
  strategy.parameters.front().opt_weight_shard_size = 2;
  return strategy;
}

TEST(MadeStrategy, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  for (const char* name : {"s.json", "s.ckpt"}) {
    const std::string path = (folder.path() / name).string();
    ASSERT_TRUE(WriteStrategy(TwoStages(), path, /*force=*/false).ok());
    const auto read = ReadStrategy(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(read->is_pipeline);
    EXPECT_EQ(read->stages, 2);
    EXPECT_EQ(read->devices_per_stage, 4);
    ASSERT_EQ(read->parameters.size(), 2U);
    EXPECT_EQ(read->parameters[0].name, "embedding");
    EXPECT_EQ(read->parameters[1].name, "head");
    EXPECT_EQ(read->parameters[1].stage, 1);
    EXPECT_EQ(read->parameters[1].tensor_map, TwoStages().parameters[0].tensor_map);
    EXPECT_EQ(read->parameters[1].opt_weight_shard_size, 2);

    EXPECT_EQ(WriteStrategy(*read, path, /*force=*/false).code(), StatusCode::kAlreadyExists);
    EXPECT_TRUE(WriteStrategy(*read, path, /*force=*/true).ok());
  }
}

TEST(MadeStrategy, KeepsTheStageThatAFileIsOf) {
  const TemporaryFolder folder;
  Strategy strategy;
  strategy.own_stage = 3;
  strategy.parameters = {Layout(0, "w", {4}, {0})};
  const std::string path = (folder.path() / "stage3.ckpt").string();
  ASSERT_TRUE(WriteStrategy(strategy, path, /*force=*/false).ok());
  const auto read = ReadStrategy(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->own_stage, 3);
  EXPECT_EQ(read->parameters.front().stage, 0);
  strategy.own_stage = -1;
  EXPECT_EQ(WriteStrategy(strategy, path, /*force=*/true).code(), StatusCode::kInvalidArgument);
}

TEST(MadeStrategy, IsRefusedWhereNoFileCouldSayIt) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "s.ckpt").string();
  const auto refused = [&path](const Strategy& strategy) {
    return WriteStrategy(strategy, path, /*force=*/true);
  };
  EXPECT_EQ(refused({}).code(), StatusCode::kInvalidArgument);
  Strategy strategy = TwoStages();
  strategy.is_pipeline = false;
  EXPECT_THAT(refused(strategy).message(), HasSubstr("parameters of 2 stages"));
  strategy = TwoStages();
  strategy.parameters.front().stage = -1;
  EXPECT_THAT(refused(strategy).message(), HasSubstr("expected a stage from 0"));
  strategy = TwoStages();
  strategy.parameters.pop_back();
  EXPECT_EQ(refused(strategy).code(), StatusCode::kMismatch) << "stage 0 is missing";
  for (const std::vector<int64_t>& matrix :
       {std::vector<int64_t>{0}, {-2}, {int64_t{1} << 40}, {1 << 20, 1 << 20}}) {
    strategy = TwoStages();
    for (StrategyParameter& layout : strategy.parameters) layout.device_matrix = matrix;
    EXPECT_FALSE(refused(strategy).ok());
  }
}

TEST(ShardBox, IsWhatARankHolds) {
  const StrategyParameter columns = Layout(3, "7-w", {2, 4}, {-1, 0});
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
}  // namespace reshard
