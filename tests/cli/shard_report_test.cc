// The grid of ranks and boxes: legible for 8 ranks and for 1,024.

#include "tools/cli/shard_report.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace reshard::shard_report_test {
namespace {

using testing::HasSubstr;
using testing::Le;

// A tensor of 4 elements for each part along each dimension. Rank r, r + parts, ... hold part r.
std::string Report(const std::vector<int64_t>& cuts, int64_t replicas) {
  ShardedCheckpoint::Tensor tensor{{.name = "w", .shape = {}}, 0, true};
  int64_t parts = 1;
  for (const int64_t cut : cuts) {
    tensor.shape.push_back(4 * cut);
    parts *= cut;
  }
  std::vector<ShardedCheckpoint::Shard> shards;
  for (int64_t part = 0; part < parts; ++part) {
    ShardedCheckpoint::Shard shard;
    shard.box.begin.resize(cuts.size());
    shard.box.extent.assign(cuts.size(), 4);
    int64_t rest = part;
    for (size_t d = cuts.size(); d-- > 0;) {
      shard.box.begin[d] = rest % cuts[d] * 4;
      rest /= cuts[d];
    }
    for (int64_t replica = 0; replica < replicas; ++replica) {
      shard.ranks.push_back(replica * parts + part);
    }
    shards.push_back(shard);
  }
  return ShardsAsText(tensor, shards);
}

TEST(WorkerReportTest, TwoDimensionsAreAGrid) {
  EXPECT_EQ(Report({2, 2}, 2),
            "w: Float32 [8, 8], stage 0: 2 x 2 parts, each on 2 ranks\n"
            "  DIM 0 / DIM 1  0:4   4:8\n"
            "  0:4            0, 4  1, 5\n"
            "  4:8            2, 6  3, 7\n");
}

TEST(WorkerReportTest, OneDimensionIsAList) {
  EXPECT_EQ(Report({1, 4}, 2),
            "w: Float32 [4, 16], stage 0: 1 x 4 parts, each on 2 ranks\n"
            "  DIM 1  RANKS\n"
            "  0:4    0, 4\n"
            "  4:8    1, 5\n"
            "  8:12   2, 6\n"
            "  12:16  3, 7\n");
}

TEST(WorkerReportTest, ThreeDimensionsHaveRowsOfTwo) {
  EXPECT_EQ(Report({2, 2, 2}, 1),
            "w: Float32 [8, 8, 8], stage 0: 2 x 2 x 2 parts, each on 1 rank\n"
            "  DIM 0, 1 / DIM 2  0:4  4:8\n"
            "  0:4, 0:4          0    1\n"
            "  0:4, 4:8          2    3\n"
            "  4:8, 0:4          4    5\n"
            "  4:8, 4:8          6    7\n");
}

TEST(WorkerReportTest, WhatIsNotCutIsOneBox) {
  EXPECT_EQ(Report({1, 1}, 8),
            "w: Float32 [4, 4], stage 0: not cut, on 8 ranks\n"
            "  BOX  RANKS\n"
            "  all  0-7\n");
  EXPECT_EQ(Report({}, 2),
            "w: Float32 [], stage 0: not cut, on 2 ranks\n"
            "  BOX  RANKS\n"
            "  all  0-1\n");
}

TEST(WorkerReportTest, AThousandRanksFitAScreen) {
  for (const auto& [cuts, replicas] :
       std::vector<std::pair<std::vector<int64_t>, int64_t>>{{{32, 32}, 1},
                                                             {{1024}, 1},
                                                             {{1, 1024}, 1},
                                                             {{8, 8}, 16},
                                                             {{2, 1, 4}, 128},
                                                             {{8, 16, 8}, 1},
                                                             {{1}, 1024},
                                                             {{512, 2}, 1}}) {
    std::istringstream text(Report(cuts, replicas));
    size_t lines = 0;
    for (std::string line; std::getline(text, line); ++lines)
      EXPECT_THAT(line.size(), Le(80U)) << line;
    EXPECT_THAT(lines, Le(19U));
  }
  EXPECT_THAT(Report({1024}, 1), HasSubstr("  0:256      0-63\n"));
  EXPECT_THAT(Report({1024}, 1), HasSubstr("each cell stands for up to 64 parts"));
  EXPECT_THAT(Report({8, 8}, 16), HasSubstr("0..961 (32)"));
}

TEST(WorkerReportTest, WhereNoFileHoldsABoxItSaysSo) {
  const ShardedCheckpoint::Tensor tensor{{.name = "w", .shape = {4}}, 0, true};
  EXPECT_EQ(ShardsAsText(tensor, {{{{0}, {2}}, {}}, {{{2}, {2}}, {1}}}),
            "w: Float32 [4], stage 0: 2 parts, each on 0 to 1 rank\n"
            "  DIM 0  RANKS\n"
            "  0:2    none\n"
            "  2:4    1\n");
}

TEST(WorkerReportTest, WhatIsInNoLayoutHasNoGrid) {
  const ShardedCheckpoint::Tensor tensor{
      {.name = "step", .dtype = DType::kInt64, .shape = {}}, 0, false};
  EXPECT_EQ(ShardsAsText(tensor, {ShardedCheckpoint::Shard{{}, {0}}}),
            "step: Int64 [], stage 0: in no layout; each rank has its own copy, reshard reads rank "
            "0's\n");
}

}  // namespace
}  // namespace reshard::shard_report_test
