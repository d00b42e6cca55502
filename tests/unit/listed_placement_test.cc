// Pieces that are stated one by one; no file is opened.
#include "src/source/listed_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "a", of [4, 6], is cut into a top and two bottom parts; rank 9 has no file.
class ListedPlacementTest : public testing::Test {
 protected:
  ListedPlacementTest() : placement_(kFiles) {
    placement_.Add("a", {4, 6},
                   {{{{2, 0}, {2, 3}}, {2, 3}, 2},
                    {{{0, 0}, {2, 6}}, {12}, 9},
                    {{{2, 3}, {2, 3}}, {2, 3}, 0},
                    {{{0, 0}, {2, 6}}, {12}, 1},
                    {{{0, 0}, {0, 6}}, {0}, 0}});
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
    placement_.ForEachPart(Named("a"), box, [&](Placement::Part& part) {
      boxes.push_back(ToString(part.box));
      return boxes.size() < most;
    });
    return boxes;
  }

  // Calls check(part) with the one part that has the element at `place`.
  template <typename Check>
  void WithPartAt(std::vector<int64_t> place, const Check& check) const {
    int calls = 0;
    placement_.ForEachPart(Named("a"), {std::move(place), {1, 1}}, [&](Placement::Part& part) {
      ++calls;
      check(part);
      return true;
    });
    EXPECT_EQ(calls, 1);
  }

  static constexpr std::array<FileId, 3> kFiles = {7, 8, 6};
  ListedPlacement placement_;
};

TEST_F(ListedPlacementTest, FilesAreNumberedAsTheyAreGiven) {
  EXPECT_THAT(placement_.files(), ElementsAre(std::pair(0, FileId{7}), std::pair(1, FileId{8}),
                                              std::pair(2, FileId{6})));
  EXPECT_EQ(placement_.RanksOf(0).begin, 0);
  EXPECT_EQ(placement_.RanksOf(0).end, 3);
  EXPECT_THAT(placement_.Stages(), ElementsAre(0));
}

TEST_F(ListedPlacementTest, ABoxMeetsThePartsThatShareElementsWithIt) {
  const std::string top = ToString(Box{{0, 0}, {2, 6}});
  const std::string left = ToString(Box{{2, 0}, {2, 3}});
  const std::string right = ToString(Box{{2, 3}, {2, 3}});
  EXPECT_THAT(PartsIn({{0, 0}, {4, 6}}), ElementsAre(left, top, right));
  EXPECT_THAT(PartsIn({{1, 2}, {2, 2}}), ElementsAre(left, top, right));
  EXPECT_THAT(PartsIn({{0, 0}, {2, 6}}), ElementsAre(top));
  EXPECT_THAT(PartsIn({{2, 2}, {2, 2}}), ElementsAre(left, right));
  EXPECT_THAT(PartsIn({{3, 5}, {1, 1}}), ElementsAre(right));
  EXPECT_THAT(PartsIn({{0, 0}, {4, 6}}, 2), ElementsAre(left, top));
}

TEST_F(ListedPlacementTest, EmptyBoxesShareNothing) {
  EXPECT_THAT(PartsIn({{2, 3}, {0, 3}}), IsEmpty());
  EXPECT_THAT(PartsIn({{0, 0}, {0, 0}}), IsEmpty());
}

TEST_F(ListedPlacementTest, ScalarsAreTheirOnlyPart) {
  placement_.Add("s", {}, {{{{}, {}}, {1}, 2}});
  int calls = 0;
  placement_.ForEachPart(Named("s"), {{}, {}}, [&](Placement::Part& part) {
    EXPECT_EQ(placement_.HolderOf(Named("s"), part, 0), 2);
    EXPECT_THAT(part.shape, ElementsAre(1));
    return ++calls > 0;
  });
  EXPECT_EQ(calls, 1);
}

TEST_F(ListedPlacementTest, PiecesOfOneBoxAreReplicas) {
  WithPartAt({0, 0}, [&](const Placement::Part& top) {
    EXPECT_THAT(top.shape, ElementsAre(12));
    EXPECT_EQ(placement_.HolderOf(Named("a"), top, 9), 9);
    EXPECT_EQ(placement_.HolderOf(Named("a"), top, 1), 1);
    EXPECT_EQ(placement_.HolderOf(Named("a"), top, 0), 1);               // the lowest
    EXPECT_THAT(placement_.HoldersOf(Named("a"), top), ElementsAre(1));  // whose files are there
  });
  WithPartAt({3, 0}, [&](const Placement::Part& left) {
    EXPECT_EQ(placement_.HolderOf(Named("a"), left, 0), 2);
    EXPECT_THAT(placement_.HoldersOf(Named("a"), left), ElementsAre(2));
  });
}

TEST_F(ListedPlacementTest, SaysWhoOughtToHoldWhatNobodyDoes) {
  WithPartAt({0, 0}, [&](const Placement::Part& top) {
    SourceTensor tensor = Named("a");
    tensor.full_shape = {4, 6};
    const Status status = placement_.NotHeld(tensor, top, {});
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_EQ(
        status.message(),
        "parameter \"a\": box " + ToString(top.box) +
            " of the full shape [4, 6] is in no source file; expected it in that of ranks 1, 9");
  });
}

TEST_F(ListedPlacementTest, PlacingMakesAnArrayAPartOfItsTensor) {
  SourceTensor tensor = Named("a");
  tensor.shard_shape = {2, 3};
  ASSERT_TRUE(placement_.Place(tensor, "f").ok());
  EXPECT_EQ(tensor.rank, std::nullopt);
  EXPECT_THAT(tensor.full_shape, ElementsAre(4, 6));
  EXPECT_EQ(tensor.table, 0U);
  EXPECT_EQ(placement_.TellerOf("a", 1).stage, 0);
  EXPECT_EQ(placement_.TellerOf("a", 1).local, 2);
}

TEST_F(ListedPlacementTest, WhatIsNotStatedStandsByItself) {
  EXPECT_TRUE(placement_.Places("a"));
  EXPECT_FALSE(placement_.Places("b"));
  EXPECT_EQ(placement_.TellerOf("b", 1).local, 1);
  SourceTensor text = Named("a");
  text.kind = ArrayKind::kText;
  for (SourceTensor tensor : {Named("b"), text}) {
    ASSERT_TRUE(placement_.Place(tensor, "f").ok());
    EXPECT_EQ(tensor.rank, 1);
    EXPECT_EQ(tensor.table, 5U);
  }
  placement_.ForEachPart(Named("b"), {{0}, {1}}, [](Placement::Part& /*part*/) {
    ADD_FAILURE();
    return true;
  });
}

TEST_F(ListedPlacementTest, RefusesAShapeThatNoFileHolds) {
  placement_.Add("huge", {int64_t{1} << 62, 8}, {{{{0, 0}, {1, 1}}, {1}, 0}});
  SourceTensor tensor = Named("huge");
  const Status status = placement_.Place(tensor, "0.ckpt: parameter \"huge\"");
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("0.ckpt: parameter \"huge\": the full shape [4611"));
}

}  // namespace
}  // namespace reshard
