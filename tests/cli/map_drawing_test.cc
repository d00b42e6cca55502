// Drawings of parameters: short lists of ranks, the width, and what is left out.
#include "tools/page/map_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace reshard::map_drawing_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ShortRanksTest, NamesAllRanksOrTellsHowManyThereAre) {
  EXPECT_EQ(ShortRanks({}), "-");
  EXPECT_EQ(ShortRanks({7}), "7");
  EXPECT_EQ(ShortRanks({0, 1, 2, 8, 9}), "0-2,8-9");
  EXPECT_EQ(ShortRanks({0, 2, 4}), "0,2,4");
  EXPECT_EQ(ShortRanks({0, 8, 16, 24, 32, 40, 48, 56}), "0,8,...,56");
  EXPECT_EQ(ShortRanks({0, 1, 16, 17, 32, 33, 48, 49}), "0-1,16-17,...,48-49");
  EXPECT_EQ(ShortRanks({0, 8, 16, 24, 32, 40, 48, 57}), "0,8,... (8 ranks)");
  EXPECT_EQ(ShortRanks({0, 8, 16, 17, 24, 25, 32, 33}), "0,8,... (8 ranks)");
  EXPECT_EQ(ShortRanks({1000000, 1000001, 1000008, 1000009}), "1000000-1000001,1000008-1000009");
}

// `replicas` ranks hold each box; the boxes of a replica are neighbours.
ParameterMap MapWith(const std::vector<int64_t>& cuts, int64_t replicas, int64_t first_rank = 0) {
  ParameterMap map{.name = "w"};
  map.before.path = "s.ckpt";
  MappedStage stage{.first_rank = first_rank, .cuts = cuts};
  const int64_t parts = std::accumulate(cuts.begin(), cuts.end(), int64_t{1}, std::multiplies<>());
  stage.ranks = parts * replicas;
  for (int64_t part = 0; part < parts; ++part) {
    MappedBox box;
    for (int64_t i = 0; i < replicas; ++i) box.ranks.push_back(first_rank + i * parts + part);
    stage.boxes.push_back(std::move(box));
  }
  map.before.stages.push_back(std::move(stage));
  return map;
}

size_t Widest(const std::string& text) {
  std::istringstream lines(text);
  size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

// The numbers in the cells, which stand between bars.
std::multiset<int64_t> RanksIn(const std::string& text) {
  std::multiset<int64_t> ranks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t bar = line.find('|');
    if (bar == std::string::npos) continue;
    std::istringstream cells(line.substr(bar + 1));
    for (std::string cell; std::getline(cells, cell, '|');) {
      if (cell.find_first_not_of(' ') != std::string::npos) ranks.insert(std::stoll(cell));
    }
  }
  return ranks;
}

TEST(DrawMapTest, FitsAScreenAndDrawsOrCountsEveryBox) {
  const std::vector<std::vector<int64_t>> grids = {
      {},        {1},        {64},         {1, 64},   {64, 1},    {8, 8},       {2, 32},
      {4, 4, 4}, {16, 1, 4}, {2, 2, 2, 8}, {1, 1024}, {8, 4, 32}, {1, 1, 1, 64}};
  for (const std::vector<int64_t>& cuts : grids) {
    for (const int64_t replicas : {1, 2, 16}) {
      for (const int64_t first : {0, 900000}) {
        const ParameterMap map = MapWith(cuts, replicas, first);
        const size_t boxes = map.before.stages[0].boxes.size();
        const std::string some = DrawMap(map, false);
        EXPECT_LE(Widest(some), 80U) << some;
        EXPECT_LE(std::count(some.begin(), some.end(), '\n'), 110) << some;
        const size_t drawn = RanksIn(some).size();
        EXPECT_GT(drawn, 0U);
        const std::string rest = "... and " + std::to_string(boxes - drawn) + " of " +
                                 std::to_string(boxes) + " boxes more";
        EXPECT_THAT(some, drawn < boxes ? testing::Matcher<std::string>(HasSubstr(rest))
                                        : Not(HasSubstr("boxes more")));

        const std::string all = DrawMap(map, true);
        EXPECT_LE(Widest(all), 80U);
        std::multiset<int64_t> expected;
        for (const MappedBox& box : map.before.stages[0].boxes) expected.insert(box.ranks.front());
        EXPECT_EQ(RanksIn(all), expected);
      }
    }
  }
}

TEST(DrawMapTest, ASideWithoutALayoutSaysSo) {
  ParameterMap map = MapWith({2}, 1);
  map.after = MappedStrategy{.path = "d.ckpt"};
  EXPECT_THAT(DrawMap(map, false), HasSubstr("after: d.ckpt\n  no layout; conversions copy it"));
}

TEST(DrawMapTest, StagesBeyondAScreenAreCounted) {
  ParameterMap map = MapWith({2}, 1);
  map.before.stages.resize(6, map.before.stages.front());
  EXPECT_THAT(DrawMap(map, false), HasSubstr("... and 2 stages more"));
  EXPECT_THAT(DrawMap(map, true), Not(HasSubstr("more")));
}

}  // namespace
}  // namespace reshard::map_drawing_test
