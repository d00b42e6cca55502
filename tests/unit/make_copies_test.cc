// The proof that copies write every byte once: what no files can provoke.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "src/plan/make_copies.h"
#include "src/tensor/byte_box.h"

namespace reshard::make_copies_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SourceTensor Tensor(DType dtype, const Shape& full_shape) {
  SourceTensor tensor;
  tensor.name = "w";
  tensor.dtype = dtype;
  tensor.full_shape = full_shape;
  return tensor;
}

// A shard whose content is one Value at `offset` of its file.
PlacedPiece Shard(FileId file, const Box& box, uint64_t offset, DType dtype = DType::kInt16) {
  return {file, file, box, {{offset, Volume(ToByteBox(box, dtype))}}};
}

const Box kTop = {{0, 0}, {2, 4}};
const Box kBottom = {{2, 0}, {2, 4}};
const Box kAll = {{0, 0}, {4, 4}};

struct CopyCase {
  const char* name;
  std::vector<PlacedPiece> shards;
};

TEST(MakeCopiesTest, RefusesShardsThatDoNotCoverExactlyOnce) {
  PlacedPiece short_content = Shard(2, kBottom, 0);
  short_content.content[0].length -= 1;
  const std::vector<CopyCase> rows = {
      {"none", {}},
      {"one is missing", {Shard(1, kTop, 100)}},
      {"one is there twice", {Shard(1, kTop, 0), Shard(2, kBottom, 0), Shard(3, kTop, 0)}},
      {"two overlap", {Shard(1, kTop, 0), Shard(2, {{1, 0}, {3, 4}}, 0)}},
      {"a column is missing", {Shard(1, kTop, 0), Shard(2, {{2, 0}, {2, 3}}, 0)}},
      {"a missing part is as large as one that is there twice",
       {Shard(1, kTop, 0), Shard(2, {{1, 0}, {1, 4}}, 0), Shard(3, {{3, 0}, {1, 4}}, 0)}},
      {"content a byte short", {Shard(1, kTop, 0), short_content}},
      {"all of it beside the box", {Shard(1, {{4, 0}, {4, 4}}, 0)}},
  };
  const SourceTensor tensor = Tensor(DType::kInt16, {8, 4});
  for (const CopyCase& row : rows) {
    const auto copies = MakeCopies(tensor, row.shards, kAll, {0, 32}, 0);
    EXPECT_EQ(copies.status().code(), StatusCode::kMismatch) << row.name;
    EXPECT_EQ(copies.status().message(),
              "parameter \"w\": the shards found do not cover box [0:4, 0:4] of the full shape [8, "
              "4] exactly once")
        << row.name;
  }
  const auto good =
      MakeCopies(tensor, {Shard(2, kBottom, 50), Shard(1, kTop, 100)}, kAll, {0, 32}, 7);
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_THAT(good->copies,
              ElementsAre(BlockCopy{1, 100, 7, 16, {}}, BlockCopy{2, 50, 23, 16, {}}));
}

// Only the part that is asked for has to be covered.
TEST(MakeCopiesTest, APartOfTheBox) {
  const SourceTensor tensor = Tensor(DType::kInt16, {8, 4});
  // The last byte of element 7 and the first byte of element 8.
  const auto copies =
      MakeCopies(tensor, {Shard(1, kTop, 100), Shard(2, kBottom, 50)}, kAll, {15, 2}, 1000);
  ASSERT_TRUE(copies.ok()) << copies.status().message();
  EXPECT_THAT(copies->copies,
              ElementsAre(BlockCopy{1, 115, 1000, 1, {}}, BlockCopy{2, 50, 1001, 1, {}}));
  EXPECT_TRUE(MakeCopies(tensor, {Shard(1, kTop, 100)}, kAll, {0, 16}, 0).ok());
  EXPECT_FALSE(MakeCopies(tensor, {Shard(1, kTop, 100)}, kAll, {0, 17}, 0).ok());
}

TEST(MakeCopiesTest, ContentInSeveralValues) {
  PlacedPiece shard = Shard(1, kAll, 0);
  shard.content = {{10, 3}, {20, 0}, {30, 29}};  // cut inside an element
  const auto copies =
      MakeCopies(Tensor(DType::kInt16, {4, 4}), {shard}, {{0, 1}, {1, 2}}, {0, 4}, 0);
  ASSERT_TRUE(copies.ok()) << copies.status().message();
  EXPECT_THAT(copies->copies, ElementsAre(BlockCopy{1, 12, 0, 1, {}}, BlockCopy{1, 30, 1, 3, {}}));
}

TEST(MakeCopiesTest, AnEmptyBoxNeedsNoShards) {
  const auto copies = MakeCopies(Tensor(DType::kInt16, {0, 4}), {}, Box::Whole({0, 4}), {0, 0}, 0);
  ASSERT_TRUE(copies.ok()) << copies.status().message();
  EXPECT_THAT(copies->copies, IsEmpty());
}

TEST(MakeCopiesTest, AScalar) {
  const auto copies =
      MakeCopies(Tensor(DType::kComplex128, {}), {Shard(5, Box::Whole({}), 40, DType::kComplex128)},
                 Box::Whole({}), {0, 16}, 8);
  ASSERT_TRUE(copies.ok()) << copies.status().message();
  EXPECT_THAT(copies->copies, ElementsAre(BlockCopy{5, 40, 8, 16, {}}));
}

}  // namespace
}  // namespace reshard::make_copies_test
