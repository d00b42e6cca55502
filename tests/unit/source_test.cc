// What a source holds and where, as its placement and the tables of its files say together.
#include "src/source/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/io/source_files.h"
#include "src/source/listed_placement.h"
#include "src/source/part_list.h"
#include "src/source/table_cache.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/temporary_folder.h"

namespace reshard::source_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::array<int64_t, 1> kOneStage = {0};

std::string Int8(const std::string& name, std::vector<int64_t> dims, const std::string& content) {
  return TensorValue(name, "Int8", std::move(dims), content);
}

// A box and the file of which rank it is taken from.
using Taken = std::pair<std::string, int64_t>;

// A source of files of these bytes, the ranks 0, 1, ...
class SourceTest : public testing::Test {
 protected:
  // Files stand alone, but for what is stated in `parts_` until source() is asked for.
  void Open(const std::vector<std::string>& files) {
    for (size_t i = 0; i < files.size(); ++i) {
      ids_.push_back(files_.Add(folder_.Write(std::to_string(i) + ".ckpt", files[i])));
    }
  }
  struct Stated {
    Box box;
    Shape shape;
    int64_t rank = 0;
  };
  void State(std::string_view name, const Shape& full, const std::vector<Stated>& parts) {
    const size_t tensor = parts_.AddTensor(name, full);
    for (const Stated& part : parts) parts_.AddPart(tensor, part.box, part.shape, part.rank);
  }
  // States "a" of [2, 4] in two halves of columns: the left one is rank 0's, the right one is rank
  // 1's and rank 2's.
  void StateHalves() {
    State("a", {2, 4}, {{kLeft, {2, 2}, 0}, {kRight, {2, 2}, 1}, {kRight, {2, 2}, 2}});
  }
  Source& source() {
    if (!source_) {
      placement_.emplace(ids_, std::move(parts_).Finish());
      source_.emplace(files_, tables_, *placement_);
    }
    return *source_;
  }

  Result<std::vector<Taken>> Cover(const std::string& name, const Box& box, int64_t near) {
    const auto tensor = source().Describe(name, near);
    if (!tensor.ok()) return tensor.status();
    const auto pieces = source().Cover(*tensor, box, near);
    if (!pieces.ok()) return pieces.status();
    std::vector<Taken> taken;
    for (const PlacedPiece& piece : *pieces) {
      EXPECT_EQ(piece.file, ids_[static_cast<size_t>(piece.rank)]);
      taken.emplace_back(ToString(piece.box), piece.rank);
    }
    return taken;
  }

  inline static const Box kLeft = {{0, 0}, {2, 2}};
  inline static const Box kRight = {{0, 2}, {2, 2}};
  inline static const Box kWhole = {{0, 0}, {2, 4}};

  const TemporaryFolder folder_;
  SourceFiles files_{2};
  std::vector<FileId> ids_;
  TableCache tables_{files_, size_t{1} << 20};
  PartListBuilder parts_;
  std::optional<ListedPlacement> placement_;
  std::optional<Source> source_;
};

TEST_F(SourceTest, ABoxIsCoveredByThePartsThatItCrosses) {
  Open({Int8("a", {2, 2}, "abef"), Int8("a", {2, 2}, "cdgh"), Int8("a", {2, 2}, "cdgh")});
  StateHalves();
  const auto all = Cover("a", kWhole, 0);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_THAT(*all, ElementsAre(Taken(ToString(kLeft), 0), Taken(ToString(kRight), 1)));
  const auto across = Cover("a", {{1, 1}, {1, 2}}, 0);
  ASSERT_TRUE(across.ok());
  EXPECT_EQ(*across, *all);
  const auto right = Cover("a", {{1, 3}, {1, 1}}, 0);
  ASSERT_TRUE(right.ok());
  EXPECT_THAT(*right, ElementsAre(Taken(ToString(kRight), 1)));
}

TEST_F(SourceTest, PiecesSayWhereTheirBytesLie) {
  const std::string before = Int8("x", {3}, "xyz");
  const std::string a = Int8("a", {2, 2}, "cdgh");
  Open({Int8("a", {2, 2}, "abef"), before + a});
  State("a", {2, 4}, {{kLeft, {2, 2}, 0}, {kRight, {2, 2}, 1}});
  const auto tensor = source().Describe("a", 0);
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->Bytes(), 8U);
  EXPECT_THAT(tensor->full_shape, ElementsAre(2, 4));
  const auto pieces = source().Cover(*tensor, kRight, 0);
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  ASSERT_EQ(pieces->size(), 1U);
  EXPECT_THAT(pieces->front().content, ElementsAre(ByteRange{before.size() + a.size() - 4, 4}));
}

TEST_F(SourceTest, ReplicasAreTakenFromTheNearestHolder) {
  Open({Int8("a", {2, 2}, "abef"), Int8("a", {2, 2}, "cdgh"), Int8("a", {2, 2}, "cdgh")});
  StateHalves();
  for (const auto& [near, holder] : {std::pair(0, 1), std::pair(1, 1), std::pair(2, 2)}) {
    const auto taken = Cover("a", kWhole, near);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_THAT(*taken, ElementsAre(Taken(ToString(kLeft), 0), Taken(ToString(kRight), holder)));
  }
}

TEST_F(SourceTest, AFileThatLacksTheArrayIsPassedOver) {
  Open({Int8("a", {2, 2}, "abef"), Int8("other", {1}, "x"), Int8("a", {2, 2}, "cdgh")});
  StateHalves();
  const auto taken = Cover("a", kWhole, 1);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(*taken, ElementsAre(Taken(ToString(kLeft), 0), Taken(ToString(kRight), 2)));

  const auto parts = source().PartsOf(*source().Describe("a", 0));
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ(ToString((*parts)[1].box), ToString(kRight));
  EXPECT_THAT((*parts)[0].ranks, ElementsAre(0));
  EXPECT_THAT((*parts)[1].ranks, ElementsAre(2));
}

TEST_F(SourceTest, APartThatNoFileHasIsNamed) {
  Open({Int8("a", {2, 2}, "abef"), Int8("b", {1}, "x"), Int8("b", {1}, "x")});
  StateHalves();
  const auto left = Cover("a", kLeft, 0);
  EXPECT_TRUE(left.ok()) << left.status().message();
  const Status status = Cover("a", kWhole, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("parameter \"a\": box " + ToString(kRight)));
  EXPECT_THAT(status.message(), HasSubstr("expected it in the file of ranks 1-2"));
}

TEST_F(SourceTest, ArraysHaveToAgree) {
  const std::string map =
      MapValue("a3", {TensorMessage("int32", {1}, "kkkk"), TensorMessage("float32", {1, 1}, "vvvv"),
                      TensorMessage("int8", {1}, "s")});
  const struct {
    const char* name;
    std::string other;  // the right half
    const char* found;
  } rows[] = {
      {"a0", TensorValue("a0", "UInt8", {2, 2}, "cdgh"), "found UInt8 [2, 2]"},
      {"a1", Int8("a1", {4}, "cdgh"), "found Int8 [4]"},
      {"a2", Int8("a2", {2, 3}, "cdghij"), "found Int8 [2, 3]"},
      {"a3", map, "found a MapTensor"},
  };
  std::string left;
  std::string right;
  for (const auto& row : rows) {
    left += Int8(row.name, {2, 2}, "abef");
    right += row.other;
  }
  Open({left, right});
  for (const auto& row : rows) {
    State(row.name, {2, 4}, {{kLeft, {2, 2}, 0}, {kRight, {2, 2}, 1}});
  }
  for (const auto& row : rows) {
    SCOPED_TRACE(row.found);
    const Status status = Cover(row.name, kWhole, 0).status();
    EXPECT_EQ(status.code(), StatusCode::kMismatch);
    EXPECT_THAT(status.message(),
                HasSubstr(std::string("1.ckpt: parameter \"") + row.name +
                          "\": expected Int8 [2, 2] as in the other ranks, " + row.found));
  }
}

// With as many elements in the same order.
TEST_F(SourceTest, AnArrayMayBeStatedInAnotherShapeThanItsBox) {
  Open({Int8("a", {4}, "abcd"), Int8("a", {2, 2}, "efgh")});
  State("a", {2, 4}, {{{{0, 0}, {1, 4}}, {4}, 0}, {{{1, 0}, {1, 4}}, {2, 2}, 1}});
  const auto taken = Cover("a", kWhole, 0);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(*taken, ElementsAre(Taken(ToString(Box{{0, 0}, {1, 4}}), 0),
                                  Taken(ToString(Box{{1, 0}, {1, 4}}), 1)));
}

// Arrays have names of their own, and it is stated what they are.
TEST_F(SourceTest, OneFileMayHoldSeveralPartsOfATensor) {
  const std::string left = Int8("a.0", {2, 2}, "abef");
  const std::string right = Int8("a.1", {2, 2}, "cdgh");
  Open({left + right, TensorValue("a.0", "UInt8", {2, 2}, "abef")});
  for (const int64_t file : {0, 1}) {
    const size_t tensor = parts_.AddTensor(file == 0 ? "a" : "b", {2, 4}, DType::kInt8);
    parts_.AddPart(tensor, kRight, {2, 2}, {file, "a.1"});
    parts_.AddPart(tensor, kLeft, {2, 2}, {file, "a.0"});
  }
  const auto tensor = source().Describe("a", 0);
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->name, "a");
  EXPECT_EQ(tensor->Bytes(), 8U);
  EXPECT_TRUE(source().HasNewFile(0, 0));
  const auto pieces = source().Cover(*tensor, kWhole, 0);
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  ASSERT_EQ(pieces->size(), 2U);
  EXPECT_EQ((*pieces)[0].box, kLeft);
  EXPECT_THAT((*pieces)[0].content, ElementsAre(ByteRange{left.size() - 4, 4}));
  EXPECT_EQ((*pieces)[1].box, kRight);
  EXPECT_THAT((*pieces)[1].content, ElementsAre(ByteRange{left.size() + right.size() - 4, 4}));
  EXPECT_FALSE(source().HasNewFile(0, 0));

  EXPECT_THAT(Cover("b", kLeft, 0).status().message(),
              HasSubstr("1.ckpt: parameter \"a.0\": expected Int8 [2, 2] as in the metadata, found "
                        "UInt8 [2, 2]; do the files belong to one checkpoint?"));
  EXPECT_THAT(Cover("b", kRight, 0).status().message(),
              HasSubstr("parameter \"b\": box " + ToString(kRight)));
}

TEST_F(SourceTest, NothingCoversEmptyBoxes) {
  Open({Int8("a", {2, 2}, "abef") + Int8("e", {0, 2}, ""), Int8("a", {2, 2}, "cdgh")});
  StateHalves();
  State("e", {0, 4}, {{{{0, 0}, {0, 2}}, {0, 2}, 0}});
  const std::pair<const char*, Box> rows[] = {
      {"a", {{0, 1}, {0, 2}}}, {"a", {{1, 2}, {1, 0}}}, {"e", {{0, 0}, {0, 4}}}};
  for (const auto& [name, box] : rows) {
    const auto taken = Cover(name, box, 0);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_THAT(*taken, IsEmpty());
  }
}

TEST_F(SourceTest, OpensNoFileThatItDoesNotNeed) {
  Open({Int8("a", {2, 2}, "abef"), Int8("a", {2, 2}, "cdgh"), Int8("a", {2, 2}, "cdgh")});
  StateHalves();
  EXPECT_THAT(source().ranks().LocalRanks(0), ElementsAre(0, 1, 2));
  EXPECT_TRUE(source().ranks().HasFiles(0));
  EXPECT_TRUE(source().HasNewFile(0, 0));
  ASSERT_TRUE(Cover("a", kLeft, 0).ok());
  EXPECT_FALSE(source().HasNewFile(0, 0));
  ASSERT_TRUE(Cover("a", kWhole, 2).ok());
  EXPECT_TRUE(source().HasNewFile(0, 1));
  EXPECT_EQ(source().KnownTableId(0, 1), 0U);
  EXPECT_NE(source().KnownTableId(0, 2), 0U);
  // Files that say the same have one table.
  const auto table = source().TableIdOf(0, 1);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(*table, source().KnownTableId(0, 2));
  EXPECT_EQ(*source().TableIdOf(0, 3), 0U);
}

// With nothing stated.
TEST_F(SourceTest, EachFileAloneIsWhatItHolds) {
  const std::string b = Int8("b", {1, 4}, "ijkl");
  Open({Int8("a", {2, 2}, "abef"), b + Int8("a", {3}, "xyz"), b});
  for (const auto& [near, rank] : {std::pair(0, 0), std::pair(1, 1), std::pair(2, 0)}) {
    const auto tensor = source().FindWhole("a", kOneStage, near);  // else of the lowest that has it
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->rank, rank);
    EXPECT_EQ(tensor->full_shape, rank == 0 ? Shape({2, 2}) : Shape({3}));
    const auto pieces = source().Cover(*tensor, Box::Whole(tensor->full_shape), 2);
    ASSERT_TRUE(pieces.ok());
    ASSERT_EQ(pieces->size(), 1U);
    EXPECT_EQ(pieces->front().rank, rank);
    EXPECT_EQ(pieces->front().content, tensor->content);
    const auto parts = source().PartsOf(*tensor);
    ASSERT_TRUE(parts.ok());
    ASSERT_EQ(parts->size(), 1U);
    EXPECT_THAT(parts->front().ranks, ElementsAre(rank));
  }
  const auto described = source().Describe("b", 0);  // not in the file of 0
  ASSERT_TRUE(described.ok()) << described.status().message();
  EXPECT_EQ(described->rank, 1);
  const auto full = source().DescribeFull("b");
  ASSERT_TRUE(full.ok()) << full.status().message();
  EXPECT_EQ(full->rank, 1);
}

TEST_F(SourceTest, SaysThatNoFileHasAName) {
  Open({Int8("a", {2, 2}, "abef"), Int8("b", {1}, "x")});
  EXPECT_EQ(source().Describe("c", 0).status().message(),
            "parameter \"c\" is in no file of source stage 0");
  EXPECT_EQ(source().FindWhole("c", kOneStage, 0).status().message(),
            "parameter \"c\" is in no source file");
  EXPECT_EQ(source().DescribeFull("c").status().code(), StatusCode::kMismatch);
}

TEST_F(SourceTest, TheCensusCountsWhoHoldsWhat) {
  Open({Int8("a", {1}, "x") + Int8("b", {1}, "x"), Int8("c", {1}, "x") + Int8("b", {1}, "x")});
  const auto census = source().CensusOf(0);
  ASSERT_TRUE(census.ok()) << census.status().message();
  EXPECT_THAT((*census)->names, ElementsAre("a", "b", "c"));
  EXPECT_EQ((*census)->files, 2);
  EXPECT_TRUE((*census)->files_differ);
  EXPECT_EQ((*census)->holders.at("b").count, 2);
  EXPECT_EQ((*census)->holders.at("b").lowest, 0);
  EXPECT_EQ((*census)->holders.at("c").count, 1);
  EXPECT_EQ((*census)->holders.at("c").lowest, 1);
}

}  // namespace
}  // namespace reshard::source_test
