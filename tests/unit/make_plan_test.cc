// Plans of files that are stated array by array: pieces, texts, and one file after the other.
#include "src/plan/make_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "format/mindspore_checkpoint/mindspore_container.h"
#include "src/io/source_files.h"
#include "src/source/listed_placement.h"
#include "src/source/part_list.h"
#include "src/source/source.h"
#include "src/source/table_cache.h"
#include "src/write/gather.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/says.h"
#include "tests/support/temporary_folder.h"

namespace reshard::make_plan_test {
namespace {

// "a" is cut in two along its columns, "b" and "t" are in the first file alone.
class MakePlanTest : public testing::Test {
 protected:
  MakePlanTest()
      : files_({.max_open = 2}),
        ids_{files_.Add(folder_.Write("0.ckpt", TensorValue("a", "Int8", {2, 2}, "abef") +
                                                    TensorValue("b", "Int8", {1, 4}, "ijkl") +
                                                    kText)),
             files_.Add(folder_.Write("1.ckpt", TensorValue("a", "Int8", {2, 2}, "cdgh")))},
        tables_(files_, size_t{1} << 20),
        placement_(ids_, Halves()),
        source_(files_, tables_, placement_) {}

  static PartList Halves() {
    PartListBuilder parts;
    const size_t a = parts.AddTensor("a", {2, 4});
    parts.AddPart(a, {{0, 0}, {2, 2}}, {2, 2}, 0);
    parts.AddPart(a, {{0, 2}, {2, 2}}, {2, 2}, 1);
    return std::move(parts).Finish();
  }

  SourceTensor Tensor(const std::string& name) const {
    constexpr std::array<int64_t, 1> kStages = {0};
    auto tensor = name == "a" ? source_.Describe(name, 0) : source_.FindWhole(name, kStages, 0);
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    return *std::move(tensor);
  }

  // The array of these pieces of "a" (0) and "b" (1).
  TargetArray ArrayOf(Shape shape, std::vector<Piece> pieces) const {
    return {"x", DType::kInt8, std::move(shape),
            Pieces{{Tensor("a"), Tensor("b")}, std::move(pieces)}};
  }

  TargetArray TextAs(std::string name) const {
    const auto table = tables_.Get(ids_[0]);
    const StoredArray* stored = (*table)->Find("t");
    return {std::move(name), stored->dtype, stored->shape,
            Opaque{(*table)->FindShared("t"), ids_[0]}};
  }

  static TargetFile FileOf(const std::vector<TargetArray>& arrays) {
    return {.path = "out.ckpt",
            .container = &kMindSporeContainer,
            .arrays = arrays.size(),
            .make = [&arrays](size_t number, TargetArray& array) -> Status {
              array = arrays[number];
              return {};
            }};
  }

  // The bytes of the file that holds these arrays.
  std::string Written(const std::vector<TargetArray>& arrays) {
    const auto plan = MakePlan(source_, FileOf(arrays));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? BytesOf(*plan) : "";
  }

  // Where segments lie, what they are called, and where their bytes come from.
  static std::string Described(const Segment& segment) {
    const ByteRange range = TargetRange(segment);
    std::string text = fmt::format("{}+{}", range.offset, range.length);
    const auto* const content = std::get_if<Content>(&segment);
    if (content == nullptr) return text + std::get<Literal>(segment).bytes;
    text += fmt::format(" {} {}", content->source_name, content->target_name);
    for (size_t i = 0; i < content->copies.size(); ++i) {
      text += fmt::format(" {}:{} {}", content->copies[i].source, content->copies[i].source_offset,
                          content->geometry.shard(i).offset);
    }
    return text;
  }

  // Expects that a visitor sees the segments of the plan; returns the plan that is made then.
  static TargetPlan CheckVisited(const Source& source, const std::vector<TargetArray>& arrays,
                                 uint64_t most_kept) {
    const auto plan = MakePlan(source, FileOf(arrays));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    std::vector<std::string> expected;
    for (const Segment& segment : plan->segments) expected.push_back(Described(segment));
    std::vector<std::string> visited;
    const auto visit = [&](const Segment& segment) { visited.push_back(Described(segment)); };
    auto made = MakePlan(source, FileOf(arrays), visit, most_kept);
    EXPECT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(visited, expected);
    return *std::move(made);
  }

  std::string BytesOf(const TargetPlan& plan) {
    std::string bytes(plan.size, '?');
    const Status filled =
        FillTarget(files_, plan, 0, std::as_writable_bytes(std::span(bytes)), nullptr, nullptr);
    EXPECT_TRUE(filled.ok()) << filled.message();
    return bytes;
  }

  inline static const std::string kText = TensorValue("t", "str", {0}, std::string("h\0\0\0", 4));

  const TemporaryFolder folder_;
  mutable SourceFiles files_;
  const std::array<FileId, 2> ids_;
  mutable TableCache tables_;
  const ListedPlacement placement_;
  const Source source_;
};

TEST_F(MakePlanTest, AnArrayOfSeveralTensors) {
  const TargetArray array = ArrayOf(
      {3, 4}, {{0, {{0, 0}, {2, 4}}, {{0, 0}, {2, 4}}}, {1, {{0, 0}, {1, 4}}, {{2, 0}, {1, 4}}}});
  EXPECT_EQ(Written({array}), TensorValue("x", "Int8", {3, 4}, "abcdefghijkl"));
}

TEST_F(MakePlanTest, APieceMayLieElsewhereInItsTensor) {
  const TargetArray array = ArrayOf({1, 2, 1}, {{0, {{1, 1}, {1, 2}}, {{0, 0, 0}, {1, 2, 1}}}});
  EXPECT_EQ(Written({array}), TensorValue("x", "Int8", {1, 2, 1}, "fg"));
}

TEST_F(MakePlanTest, TextsStandAsTheyAreOrUnderAnotherName) {
  EXPECT_EQ(Written({TextAs("t")}), kText);
  EXPECT_EQ(Written({TextAs("u")}), TensorValue("u", "str", {0}, std::string("h\0\0\0", 4)));
}

TEST_F(MakePlanTest, SegmentsThatAreVisitedAreThoseOfThePlan) {
  const std::vector<TargetArray> arrays = {
      ArrayOf({2, 4}, {{0, {{0, 0}, {2, 4}}, {{0, 0}, {2, 4}}}}), TextAs("u")};
  const auto kept = MakePlan(source_, FileOf(arrays));
  const auto streamed = CheckVisited(source_, arrays, 0);
  EXPECT_TRUE(streamed.segments.empty());
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(kept->is_whole);
  EXPECT_EQ(streamed.size, kept->size);
  EXPECT_EQ(streamed.sources, kept->sources);
}

// The second of two tensors that are cut alike is not planned from scratch.
TEST_F(MakePlanTest, TensorsCutAlikeAreTakenFromWhereEachLies) {
  const FileId file =
      files_.Add(folder_.Write("2.ckpt", TensorValue("p", "Int8", {2, 2}, "abcd") +
                                             TensorValue("q", "Int8", {2, 2}, "efgh") +
                                             TensorValue("r", "Int8", {4}, "ijkl")));
  const ListedPlacement placement(std::array{file});
  const Source source(files_, tables_, placement);
  std::vector<TargetArray> arrays;
  std::string expected;
  for (const auto& [name, box, bytes] :
       {std::tuple("p", Box{{0, 1}, {2, 1}}, "bd"), std::tuple("q", Box{{0, 1}, {2, 1}}, "fh"),
        std::tuple("q", Box{{0, 0}, {2, 1}}, "eg"), std::tuple("r", Box{{1}, {2}}, "jk"),
        std::tuple("p", Box{{0, 0}, {2, 1}}, "ac")}) {
    constexpr std::array<int64_t, 1> kStages = {0};
    const std::string target = fmt::format("{}_{}", name, arrays.size());
    arrays.push_back(
        {target, DType::kInt8, box.extent,
         Pieces{{*source.FindWhole(name, kStages, 0)}, {{0, box, Box::Whole(box.extent)}}}});
    expected += TensorValue(target, "Int8", box.extent, bytes);
  }
  const auto plan = MakePlan(source, FileOf(arrays));
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(BytesOf(*plan), expected);
  // The same is visited, and written, whatever is kept of it: nothing, a part up to some array, or
  // all.
  bool ends_early = false;
  const uint64_t least = 2 * arrays.size() * sizeof(Segment);
  for (uint64_t most_kept = 0; most_kept < 2 * least; most_kept += 64) {
    const TargetPlan visited = CheckVisited(source, arrays, most_kept);
    if (visited.is_whole) {
      EXPECT_EQ(BytesOf(visited), expected);
    } else {
      EXPECT_TRUE(visited.segments.empty());
      ends_early = ends_early || most_kept > least;
    }
  }
  EXPECT_TRUE(ends_early);
  EXPECT_TRUE(CheckVisited(source, arrays, uint64_t{1} << 20).is_whole);
}

TEST_F(MakePlanTest, RefusesPiecesThatDoNotFillTheirArray) {
  const Piece top = {0, {{0, 0}, {2, 4}}, {{0, 0}, {2, 4}}};
  const struct {
    const char* name;
    std::vector<Piece> pieces;
  } rows[] = {
      {"not in order", {{1, {{0, 0}, {1, 4}}, {{2, 0}, {1, 4}}}, top}},
      {"a gap before the second",
       {{0, {{0, 0}, {1, 4}}, {{0, 0}, {1, 4}}}, {1, {{0, 0}, {1, 4}}, {{2, 0}, {1, 4}}}}},
      {"another volume", {top, {1, {{0, 0}, {1, 3}}, {{2, 0}, {1, 4}}}}},
      {"the end is missing", {top}},
      {"none", {}},
  };
  for (const auto& row : rows) {
    const std::vector<TargetArray> arrays = {ArrayOf({3, 4}, row.pieces)};
    const auto plan = MakePlan(source_, FileOf(arrays));
    EXPECT_EQ(plan.status().code(), StatusCode::kMismatch) << row.name;
    EXPECT_THAT(plan.status().message(), Naming("\"x\": ")) << row.name;
  }
}

}  // namespace
}  // namespace reshard::make_plan_test
