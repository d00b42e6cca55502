// Parts that are stated one by one; no file is opened.
#include "src/source/listed_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/source/part_list.h"

namespace reshard::listed_placement_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int64_t> RanksOf(const std::vector<ArrayPlace>& places) {
  std::vector<int64_t> ranks;
  for (const ArrayPlace& place : places) ranks.push_back(place.rank);
  return ranks;
}

// "a", of [4, 6], is cut into a top and two bottom parts; rank 9 has no file.
class ListedPlacementTest : public testing::Test {
 protected:
  ListedPlacementTest() : placement_(kFiles, Stated()) {}

  static PartList Stated() {
    PartListBuilder parts;
    const size_t told = parts.AddTensor("told", {2}, DType::kInt8);
    parts.AddPart(told, {{1}, {1}}, {1}, {2, "told.1"});
    parts.AddPart(told, {{0}, {1}}, {1}, {2, "told.0"});
    const size_t a = parts.AddTensor("a", {4, 6});
    parts.AddPart(a, {{2, 0}, {2, 3}}, {2, 3}, 2);
    parts.AddPart(a, {{0, 0}, {2, 6}}, {12}, 9);
    parts.AddPart(a, {{2, 3}, {2, 3}}, {2, 3}, 0);
    parts.AddPart(a, {{0, 0}, {2, 6}}, {12}, 1);
    parts.AddPart(a, {{0, 0}, {0, 6}}, {0}, 0);
    parts.AddPart(parts.AddTensor("s", {}), {{}, {}}, {1}, 2);
    parts.AddPart(parts.AddTensor("huge", {int64_t{1} << 62, 8}), {{0, 0}, {1, 1}}, {1}, 0);
    parts.AddTensor("none", {0}, DType::kInt8);
    return std::move(parts).Finish();
  }

  static SourceTensor Named(std::string name) {
    SourceTensor tensor;
    tensor.name = std::move(name);
    tensor.rank = 1;
    tensor.table = 5;
    return tensor;
  }

  // The boxes of the parts that share elements with `box`, at most `most`.
  std::vector<std::string> PartsIn(const Box& box, size_t most = 100) const {
    std::vector<std::string> boxes;
    placement_.ForEachPart(Named("a"), box, 0, [&](Placement::Part& part) {
      boxes.push_back(ToString(part.box));
      return boxes.size() < most;
    });
    return boxes;
  }

  // Calls check(part) with the one part that has the element at `place`.
  template <typename Check>
  void WithPartAt(std::vector<int64_t> place, int64_t near, const Check& check) const {
    int calls = 0;
    const auto visit = [&](Placement::Part& part) {
      ++calls;
      check(part);
      return true;
    };
    placement_.ForEachPart(Named("a"), {std::move(place), {1, 1}}, near, visit);
    EXPECT_EQ(calls, 1);
  }

  static constexpr std::array<FileId, 3> kFiles = {7, 8, 6};
  const ListedPlacement placement_;
};

TEST_F(ListedPlacementTest, FilesAreNumberedAsTheyAreGiven) {
  EXPECT_THAT(
      placement_.ranks().files,
      ElementsAre(std::pair(0, FileId{7}), std::pair(1, FileId{8}), std::pair(2, FileId{6})));
  EXPECT_EQ(placement_.ranks().RanksOf(0).begin, 0);
  EXPECT_EQ(placement_.ranks().RanksOf(0).end, 3);
  EXPECT_THAT(placement_.ranks().taken_stages, ElementsAre(0));
}

TEST_F(ListedPlacementTest, ABoxMeetsThePartsThatShareElementsWithIt) {
  const std::string top = ToString(Box{{0, 0}, {2, 6}});
  const std::string left = ToString(Box{{2, 0}, {2, 3}});
  const std::string right = ToString(Box{{2, 3}, {2, 3}});
  EXPECT_THAT(PartsIn({{0, 0}, {4, 6}}), ElementsAre(top, left, right));
  EXPECT_THAT(PartsIn({{1, 2}, {2, 2}}), ElementsAre(top, left, right));
  EXPECT_THAT(PartsIn({{0, 0}, {2, 6}}), ElementsAre(top));
  EXPECT_THAT(PartsIn({{2, 2}, {2, 2}}), ElementsAre(left, right));
  EXPECT_THAT(PartsIn({{3, 5}, {1, 1}}), ElementsAre(right));
  EXPECT_THAT(PartsIn({{0, 0}, {4, 6}}, 2), ElementsAre(top, left));
}

TEST_F(ListedPlacementTest, EmptyBoxesShareNothing) {
  EXPECT_THAT(PartsIn({{2, 3}, {0, 3}}), IsEmpty());
  EXPECT_THAT(PartsIn({{0, 0}, {0, 0}}), IsEmpty());
}

TEST_F(ListedPlacementTest, ScalarsAreTheirOnlyPart) {
  int calls = 0;
  placement_.ForEachPart(Named("s"), {{}, {}}, 0, [&](Placement::Part& part) {
    EXPECT_EQ(part.nearest.rank, 2);
    EXPECT_EQ(part.nearest.array, "s");
    EXPECT_THAT(part.shape, ElementsAre(1));
    return ++calls > 0;
  });
  EXPECT_EQ(calls, 1);
}

TEST_F(ListedPlacementTest, PartsOfOneBoxAreReplicas) {
  for (const auto& [near, nearest] : {std::pair(9, 9), std::pair(1, 1), std::pair(0, 1)}) {
    WithPartAt({0, 0}, near, [&, nearest = nearest](const Placement::Part& top) {
      EXPECT_THAT(top.shape, ElementsAre(12));
      EXPECT_EQ(top.nearest.rank, nearest);
      EXPECT_THAT(RanksOf(placement_.HoldersOf(Named("a"), top)), ElementsAre(1, 9));
    });
  }
  WithPartAt({3, 0}, 0, [&](const Placement::Part& left) {
    EXPECT_EQ(left.nearest.rank, 2);
    EXPECT_THAT(RanksOf(placement_.HoldersOf(Named("a"), left)), ElementsAre(2));
  });
}

TEST_F(ListedPlacementTest, OneFileMayHoldSeveralPartsOfATensor) {
  std::vector<std::string> arrays;
  placement_.ForEachPart(Named("told"), {{0}, {2}}, 0, [&](Placement::Part& part) {
    EXPECT_EQ(part.nearest.rank, 2);
    arrays.emplace_back(part.nearest.array);
    return true;
  });
  EXPECT_THAT(arrays, ElementsAre("told.0", "told.1"));
}

TEST_F(ListedPlacementTest, SaysWhoOughtToHoldWhatNobodyDoes) {
  WithPartAt({0, 0}, 0, [&](const Placement::Part& top) {
    SourceTensor tensor = Named("a");
    tensor.full_shape = {4, 6};
    const Status status = placement_.NotHeld(tensor, top, {});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(status.message(), "parameter \"a\": box " + ToString(top.box) +
                                    " of the full shape [4, 6] is in no source file; expected it "
                                    "in the file of ranks 1, 9");
  });
}

TEST_F(ListedPlacementTest, TellsWhatWasStatedOfATensor) {
  const auto a = placement_.Tell("a", 1);
  ASSERT_TRUE(a);
  EXPECT_EQ(a->stage, 0);
  EXPECT_EQ(a->teller.rank, 0);  // of the part that begins first
  EXPECT_FALSE(a->dtype);
  const auto told = placement_.Tell("told", 1);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->dtype, DType::kInt8);
  EXPECT_THAT(*told->full_shape, ElementsAre(2));
  const auto none = placement_.Tell("none", 1);
  ASSERT_TRUE(none);
  EXPECT_THAT(*none->full_shape, ElementsAre(0));
}

TEST_F(ListedPlacementTest, PlacingMakesAnArrayAPartOfItsTensor) {
  SourceTensor tensor = Named("a");
  tensor.shard_shape = {2, 3};
  ASSERT_TRUE(placement_.Place(tensor, "f").ok());
  EXPECT_EQ(tensor.rank, std::nullopt);
  EXPECT_THAT(tensor.full_shape, ElementsAre(4, 6));
  EXPECT_EQ(tensor.table, 0U);
}

TEST_F(ListedPlacementTest, WhatIsNotStatedStandsByItself) {
  EXPECT_TRUE(placement_.Places("a"));
  EXPECT_FALSE(placement_.Places("b"));
  SourceTensor text = Named("a");
  text.kind = ArrayKind::kText;
  for (SourceTensor tensor : {Named("b"), text}) {
    ASSERT_TRUE(placement_.Place(tensor, "f").ok());
    EXPECT_EQ(tensor.rank, 1);
    EXPECT_EQ(tensor.table, 5U);
  }
  placement_.ForEachPart(Named("b"), {{0}, {1}}, 0, [](Placement::Part& /*part*/) {
    ADD_FAILURE();
    return true;
  });
}

TEST_F(ListedPlacementTest, RefusesAShapeThatNoFileHolds) {
  SourceTensor tensor = Named("huge");
  const Status status = placement_.Place(tensor, "0.ckpt: parameter \"huge\"");
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("0.ckpt: parameter \"huge\": the full shape [4611"));
}

}  // namespace
}  // namespace reshard::listed_placement_test
