// Layouts that make no sense; what the others mean is tested against the definition
// (tests/property/shard_grid_property_test.cc).
#include "src/source/shard_grid.h"
#include "src/mindspore/layout_grid.h"

#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/strategy_bytes.h"

namespace reshard::shard_grid_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct GridCase {
  const char* name;
  ParameterLayout layout;
  size_t dims;
  std::string message;
};

ParameterLayout ShardedGrid(std::vector<int64_t> matrix, std::vector<std::vector<int64_t>> map,
                            int64_t step, int64_t size) {
  ParameterLayout layout = MakeLayout(std::move(matrix), std::move(map));
  layout.opt_weight_shard_step = step;
  layout.opt_weight_shard_size = size;
  return layout;
}

TEST(ShardGridTest, RefusesLayoutsThatDoNotFit) {
  const std::vector<GridCase> rows = {
      {"fewer entries than dims", MakeLayout({4}, {{0, -1}}), 3,
       "the tensor map [0, -1] does not fit a tensor of 3 dimensions"},
      {"more entries than dims", MakeLayout({4}, {{0, -1, -1}}), 2,
       "the tensor map [0, -1, -1] does not fit a tensor of 2 dimensions"},
      {"entries for a scalar", MakeLayout({4}, {{0}}), 0,
       "the tensor map [0] does not fit a tensor of 0 dimensions"},
      {"no entry for a matrix", MakeLayout({4}, {{}}), 2, "the tensor map [] does not fit"},
      {"nested maps of other dims", MakeLayout({4}, {{0}, {-1}}), 3,
       "the tensor map [[0], [-1]] does not fit a tensor of 3 dimensions"},
      {"an axis beyond the matrix", MakeLayout({2, 2}, {{2, -1}}), 2,
       "the tensor map names device axis 2, but the device matrix [2, 2] has 2 axes"},
      {"an axis below -1", MakeLayout({2, 2}, {{-2, -1}}), 2, "names device axis -2"},
      {"any axis of no matrix", MakeLayout({}, {{0}}), 1,
       "names device axis 0, but the device matrix [] has 0 axes"},
      {"an axis twice", MakeLayout({2, 2}, {{1, 1}}), 2, "uses device axis 1 twice"},
      {"an axis twice in one dimension", MakeLayout({2, 2}, {{1, 1}, {-1}}), 2,
       "uses device axis 1 twice"},
      {"an axis of size 0", MakeLayout({2, 0}, {{0, -1}}), 2, "the device matrix [2, 0]"},
      {"an axis below 0", MakeLayout({-2}, {{0}}), 1, "the device matrix [-2]"},
      {"devices beyond 63 bits", MakeLayout({int64_t{1} << 32, int64_t{1} << 32}, {{0}}), 1,
       "the device matrix [4294967296, 4294967296]"},
      {"optimizer shards of a scalar", ShardedGrid({4}, {{}}, 1, 4), 0,
       "optimizer sharding (opt_weight_shard_size 4, opt_weight_shard_step 1) cannot be placed on "
       "the device matrix [4]: a scalar has no first dimension"},
      {"optimizer shards without a free axis", ShardedGrid({2, 2}, {{1, 0}}, 1, 2), 2,
       "the device matrix [2, 2]: the tensor map leaves no device axis free"},
      {"free axes of size 1", ShardedGrid({2, 1}, {{1, -1}}, 1, 2), 2,
       "leaves no device axis free"},
      {"more optimizer shards than replicas", ShardedGrid({2, 4}, {{0}}, 4, 4), 1,
       "there are only 2 replicas"},
      {"more than the devices", ShardedGrid({2, 3}, {{-1}}, 1, 7), 1, "there are only 6 replicas"},
      {"optimizer shards that fit no axis", ShardedGrid({3, 2, 2}, {{0}}, 2, 4), 1,
       "cannot be placed on the device matrix [3, 2, 2]: 4 does not fit the axes"},
      {"a step that is not the free axis's", ShardedGrid({2, 4}, {{0}}, 1, 2), 1,
       "with one free axis, the step has to be 4"},
      {"a step below 0", ShardedGrid({4}, {{-1}}, -1, 4), 1, "expected a step from 0 on"},
      {"a size below -1", ShardedGrid({4}, {{-1}}, 1, -2), 1, "expected a step from 0 on"},
  };
  for (const GridCase& row : rows) {
    const auto grid = MakeGrid(row.layout, row.dims, "src.ckpt: parameter \"w\"");
    EXPECT_EQ(grid.status().code(), StatusCode::kMismatch) << row.name;
    EXPECT_THAT(grid.status().message(), StartsWith("src.ckpt: parameter \"w\": ")) << row.name;
    EXPECT_THAT(grid.status().message(), HasSubstr(row.message)) << row.name;
  }
}

// What looks wrong and is not.
TEST(ShardGridTest, TakesWhatIsUnusual) {
  const std::vector<std::pair<ParameterLayout, std::vector<int64_t>>> rows = {
      {MakeLayout({}, {{-1, -1}}), {1, 1}},              // one device
      {MakeLayout({2, 1}, {{0, 0}}), {1, 1}},            // an axis of size 1 splits nothing
      {ShardedGrid({4}, {{0}}, 1, 0), {4}},              // a step without a size
      {ShardedGrid({4}, {{0}}, 0, 4), {4}},              // a size without a step
      {ShardedGrid({2, 3}, {{-1}}, 1, 2), {2}},          // rank % 2
      {ShardedGrid({2, 2}, {{1, -1}}, 1, -1), {4, 1}},   // all replicas
      {ShardedGrid({2, 2}, {{1}, {-1}}, 7, 2), {4, 1}},  // nested maps: any step
  };
  for (const auto& [layout, cuts] : rows) {
    const auto grid = MakeGrid(layout, cuts.size(), "w");
    ASSERT_TRUE(grid.ok()) << grid.status().message();
    EXPECT_EQ(grid->cuts(), cuts);
  }
}

TEST(ShardGridTest, ALongTensorMapIsCutShort) {
  const std::vector<std::vector<int64_t>> flat = {std::vector<int64_t>(200'000, -1)};
  const std::vector<std::vector<int64_t>> nested(200'000, std::vector<int64_t>(2, -1));
  for (const auto& map : {flat, nested}) {
    const auto grid = MakeGrid(MakeLayout({2}, map), 2, "w");
    EXPECT_EQ(grid.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(grid.status().message(), HasSubstr(" and 199980 more] does not fit a tensor of 2"));
    EXPECT_LT(grid.status().message().size(), 500U);
  }
}

TEST(ShardGridTest, ADimensionThatDoesNotDivideIsNamed) {
  const auto grid = MakeGrid(MakeLayout({2, 3}, {{1, 0}}), 2, "w").value();
  const auto shard = grid.ShardShape({4, 8}, "dst.ckpt: parameter \"w\"");
  EXPECT_EQ(shard.status().code(), StatusCode::kMismatch);
  EXPECT_EQ(shard.status().message(),
            "dst.ckpt: parameter \"w\": dimension 1 of the full shape [4, 8] has 8 elements, which "
            "cannot be cut into 3 equal parts");
}

TEST(ShardGridTest, RowsThatOptimizerShardsDoNotDivideAreNamed) {
  const auto grid = MakeGrid(ShardedGrid({2, 4}, {{1, -1}}, 1, 4), 2, "w").value();
  EXPECT_THAT(*grid.ShardShape({16, 3}, "w"), ElementsAre(2, 3));
  EXPECT_THAT(grid.ShardShape({12, 3}, "w").status().message(),
              HasSubstr("dimension 0 of the full shape [12, 3] has 12 elements, which cannot be "
                        "cut into 8 equal parts"));
}

TEST(ShardGridTest, AFullShapeBeyond63BitsIsNamed) {
  const auto grid = MakeGrid(MakeLayout({4}, {{0}}), 1, "w").value();
  const int64_t largest = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(*grid.FullShape({largest / 4}, "w"), ElementsAre(largest / 4 * 4));
  const auto full = grid.FullShape({largest / 2}, "src.ckpt: parameter \"w\"");
  EXPECT_EQ(full.status().code(), StatusCode::kMismatch);
  EXPECT_EQ(full.status().message(), "src.ckpt: parameter \"w\": dimension 0 of " +
                                         std::to_string(largest / 2) +
                                         " elements a shard times 4 parts is too large");
}

TEST(ShardGridTest, PartsAreNumberedRowByRow) {
  const std::vector<int64_t> cuts = {2, 1, 3};
  EXPECT_EQ(PartNumber(std::vector<int64_t>{1, 0, 2}, cuts), 5);
  EXPECT_THAT(PartAt(4, cuts), ElementsAre(1, 0, 1));
  EXPECT_EQ(PartNumber({}, {}), 0);  // of a scalar
  EXPECT_TRUE(PartAt(0, {}).empty());
}

}  // namespace
}  // namespace reshard::shard_grid_test
