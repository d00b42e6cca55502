// Where MindSpore 2.10.0 errs or refuses, and reshard does not (docs/reference/caveats.md): results
// by hand, since there is nothing to compare with.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/convert.h"
#include "reshard/strategy.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/conversion_folder.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::beyond_mindspore_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The bytes of these numbers.
std::string Bytes(const std::vector<int>& numbers) {
  std::string bytes;
  for (const int number : numbers) bytes.push_back(static_cast<char>(number));
  return bytes;
}

// 0, 1, 2 and so on.
TestTensor Counting(const std::string& name, const Shape& shape) {
  std::vector<int> numbers(ElementCount(shape).value());
  std::iota(numbers.begin(), numbers.end(), 0);
  return {name, DType::kInt8, shape, Bytes(numbers)};
}

TestTensor Part(const std::string& name, const Shape& shape, const std::vector<int>& numbers) {
  return {name, DType::kInt8, shape, Bytes(numbers)};
}

ConvertReport RunConvert(const ConversionFolder& folder) {
  auto report = Convert(folder.options());
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(*report) : ConvertReport();
}

// Item 1. The rightmost axis cuts the rows, the middle one the columns, the leftmost is free: with
// rank r = 4a + 2b + c, the rows of half c, of those the half a, and the columns of half b.
const std::vector<TestTensor> kUnorderedShards = {
    Part("w", {2, 2}, {0, 1, 4, 5}),     Part("w", {2, 2}, {16, 17, 20, 21}),
    Part("w", {2, 2}, {2, 3, 6, 7}),     Part("w", {2, 2}, {18, 19, 22, 23}),
    Part("w", {2, 2}, {8, 9, 12, 13}),   Part("w", {2, 2}, {24, 25, 28, 29}),
    Part("w", {2, 2}, {10, 11, 14, 15}), Part("w", {2, 2}, {26, 27, 30, 31})};

ParameterLayout UnorderedLayout() {
  ParameterLayout layout = MakeLayout({2, 2, 2}, {{0, 1}});
  layout.opt_weight_shard_step = 4;
  layout.opt_weight_shard_size = 2;
  return layout;
}

TEST(UnorderedOptimizerShardsTest, AreCutByTheDefinition) {
  ConversionFolder folder({}, {{"w", UnorderedLayout()}});
  folder.WriteRank(0, {Counting("w", {8, 4})});
  RunConvert(folder);
  for (int64_t rank = 0; rank < 8; ++rank) {
    EXPECT_THAT(folder.Target(rank), ElementsAre(kUnorderedShards[static_cast<size_t>(rank)]));
  }
}

TEST(UnorderedOptimizerShardsTest, AreJoinedByTheDefinition) {
  ConversionFolder folder({{"w", UnorderedLayout()}}, {});
  for (int64_t rank = 0; rank < 8; ++rank) {
    folder.WriteRank(rank, {kUnorderedShards[static_cast<size_t>(rank)]});
  }
  RunConvert(folder);
  EXPECT_THAT(folder.Target(0), ElementsAre(Counting("w", {8, 4})));
}

// Item 2.
TEST(DeviceCountsTest, NeedNotDivideEachOther) {
  const std::vector<NamedLayout> layouts = {{"w", MakeLayout({6}, {{0}})}};
  ConversionFolder folder(layouts, {{"w", MakeLayout({4}, {{0}})}});
  folder.WriteStage({Counting("w", {12})}, layouts, 6);
  EXPECT_THAT(RunConvert(folder).warnings, IsEmpty());
  EXPECT_THAT(folder.Target(0), ElementsAre(Part("w", {3}, {0, 1, 2})));
  EXPECT_THAT(folder.Target(1), ElementsAre(Part("w", {3}, {3, 4, 5})));
  EXPECT_THAT(folder.Target(2), ElementsAre(Part("w", {3}, {6, 7, 8})));
  EXPECT_THAT(folder.Target(3), ElementsAre(Part("w", {3}, {9, 10, 11})));
}

TEST(DeviceCountsTest, MayBeOneForEachOfSeveralStages) {
  const std::vector<NamedLayout> layouts = {
      {"a", MakeLayout({2}, {{0}})}, {"b", MakeLayout({2}, {{0}})}, {"c", MakeLayout({2}, {{0}})}};
  ConversionFolder folder(layouts, {{"0-a", MakeLayout({1}, {{0}})},
                                    {"1-b", MakeLayout({}, {{-1}})},
                                    {"2-c", MakeLayout({1, 1}, {{-1}})}});
  const TestTensor a = Counting("a", {4});
  const TestTensor b = Counting("b", {2});
  const TestTensor c = Counting("c", {6});
  folder.WriteStage({a, b, c}, layouts, 2);
  EXPECT_THAT(RunConvert(folder).warnings, IsEmpty());
  EXPECT_THAT(folder.Target(0), ElementsAre(a));
  EXPECT_THAT(folder.Target(1), ElementsAre(b));
  EXPECT_THAT(folder.Target(2), ElementsAre(c));
  for (const int64_t rank : {0, 1, 2}) {
    EXPECT_THAT(
        *SourceRanks(rank, folder.options().source.strategy, folder.options().target.strategy),
        ElementsAre(0, 1));
  }
}

// Two axes cut one dimension, the first listed slowest: ranks 0, 2, 1, 3 in the order of the parts.
TEST(NestedMapsTest, MayBeOfOneDimension) {
  ConversionFolder folder({{"w", MakeLayout({2, 2}, {{0, 1}})}},
                          {{"w", MakeLayout({2, 3}, {{1, 0}})}});
  folder.WriteRank(0, {Part("w", {3}, {0, 1, 2})});
  folder.WriteRank(1, {Part("w", {3}, {6, 7, 8})});
  folder.WriteRank(2, {Part("w", {3}, {3, 4, 5})});
  folder.WriteRank(3, {Part("w", {3}, {9, 10, 11})});
  EXPECT_THAT(RunConvert(folder).warnings, IsEmpty());
  for (int rank = 0; rank < 6; ++rank) {
    EXPECT_THAT(folder.Target(rank), ElementsAre(Part("w", {2}, {2 * rank, 2 * rank + 1})));
  }
}

TEST(NamesTest, MayHaveDashes) {
  const ParameterLayout rows = MakeLayout({2}, {{0}});
  ConversionFolder folder({{"0-layer-norm.weight", rows}, {"1-3-gram", rows}},
                          {{"layer-norm.weight", rows}, {"3-gram", rows}, {"a-b", rows}});
  folder.WriteStage({Counting("layer-norm.weight", {4})}, {{"layer-norm.weight", rows}}, 2);
  folder.WriteStage({Counting("3-gram", {2}), Counting("a-b", {})}, {{"3-gram", rows}}, 2, 2);
  RunConvert(folder);
  EXPECT_THAT(folder.Target(1),
              ElementsAre(Part("3-gram", {1}, {1}), Part("layer-norm.weight", {2}, {2, 3}),
                          Counting("a-b", {})));
}

TEST(StagesTest, NeedNotHaveAParameterOfTheSource) {
  const ParameterLayout rows = MakeLayout({1}, {{0}});
  ConversionFolder folder({{"0-a", rows}, {"1-b", rows}},
                          {{"0-a", rows}, {"1-fresh", rows}, {"2-b", rows}});
  folder.WriteRank(0, {Counting("a", {4})});
  folder.WriteRank(1, {Counting("b", {2})});
  EXPECT_THAT(RunConvert(folder).warnings,
              ElementsAre(Says(WarningCode::kAbsentParameters, HasSubstr("\"fresh\"")),
                          Says(WarningCode::kEmptyTargets, HasSubstr("rank_1/checkpoint_1.ckpt"))));
  EXPECT_THAT(folder.Target(0), ElementsAre(Counting("a", {4})));
  EXPECT_THAT(folder.Target(2), ElementsAre(Counting("b", {2})));
}

// Item 3: bytes stay bytes.
struct BytesRow {
  DType dtype;
  std::string content;  // of four rows, cut in two
};

TEST(BytesTest, OfEveryDTypeStayAsTheyAre) {
  const std::vector<BytesRow> rows = {
      // Quiet and signalling NaNs of either sign, an infinity, a subnormal.
      {DType::kBFloat16, "\xc0\xff\x81\x7f\x80\x7f\x01\x80"},
      {DType::kBFloat16, "\xff\xff\xff\x7f\xc1\x7f\x80\xff"},
      {DType::kFloat16, Bytes({0x01, 0x7c, 0x01, 0xfc, 0xff, 0x7f, 0x00, 0x7e})},
      {DType::kInt4, "\x7f\x80\x1e\xe1"},  // two values in each byte
      {DType::kFloat8E4M3FN, "\x7f\xff\x80\x01"},
      {DType::kFloat8E5M2, "\x7d\x7e\x7f\xfc"},
      {DType::kHiFloat8, "\x80\x6f\xef\x01"},
      {DType::kBool, Bytes({0x01, 0x00, 0x02, 0xff})},  // also those that are no truth values
      {DType::kComplex64, std::string("\x01\x00\x80\x7f", 4) + std::string(28, '\xa5')},
      {DType::kComplex128, std::string(63, '\xff') + "\x7f"},
  };
  for (const BytesRow& row : rows) {
    SCOPED_TRACE(std::string(DTypeName(row.dtype)));
    ConversionFolder folder({}, {{"w", MakeLayout({2}, {{0}})}});
    folder.WriteRank(0, {{"w", row.dtype, {4}, row.content}});
    RunConvert(folder);
    const size_t half = row.content.size() / 2;
    const TestTensor first = {"w", row.dtype, {2}, row.content.substr(0, half)};
    const TestTensor second = {"w", row.dtype, {2}, row.content.substr(half)};
    EXPECT_THAT(folder.Target(0), ElementsAre(first));
    EXPECT_THAT(folder.Target(1), ElementsAre(second));
  }
}

TEST(EmptyTensorsTest, AreKept) {
  ConversionFolder folder({{"cut", MakeLayout({2}, {{0, -1, -1}})}},
                          {{"cut", MakeLayout({3}, {{0, -1, -1}})}});
  const TestTensor uncut = {"uncut", DType::kFloat32, {0}, ""};
  for (const int64_t rank : {0, 1}) {
    folder.WriteRank(rank, {{"cut", DType::kFloat32, {3, 0, 2}, ""}, uncut});
  }
  RunConvert(folder);
  for (const int64_t rank : {0, 1, 2}) {
    const TestTensor shard = {"cut", DType::kFloat32, {2, 0, 2}, ""};
    EXPECT_THAT(folder.Target(rank), ElementsAre(shard, uncut));
  }
}

std::string Utf32(std::string_view text) {
  std::string bytes;
  for (const char c : text) bytes += {c, '\0', '\0', '\0'};
  return bytes;
}

// Strings and maps go whole, headers included, from one rank to every one that gets them, also
// where a strategy names them.
TEST(OtherEntriesTest, GoWhole) {
  const std::string note = TensorValue("note", "str", {0}, Utf32("hello"));
  const auto tensors = [](const std::string& bytes) {
    return std::vector<std::string>{TensorMessage("int32", {1}, bytes + bytes + bytes + bytes),
                                    TensorMessage("float32", {1, 1}, "vvvv"),
                                    TensorMessage("int32", {1}, "ssss")};
  };
  const std::string map = MapValue("map", tensors("k")) + MapValue("map", tensors("l"));
  const std::string weight = TensorValue("w", "Int8", {1}, "x");
  const ParameterLayout rows = MakeLayout({2}, {{0}});
  for (const bool named : {false, true}) {
    std::vector<NamedLayout> layouts = {{"w", rows}};
    if (named) layouts.insert(layouts.end(), {{"note", rows}, {"map", rows}});
    ConversionFolder folder(layouts, layouts);
    for (const int64_t rank : {0, 1}) {
      folder.WriteRank(rank, fmt::format("{}{}{}", map, weight, note));
    }
    EXPECT_THAT(RunConvert(folder).warnings, IsEmpty());
    EXPECT_EQ(ReadFile(folder.folder().path() / "target" / RankPath(1)),
              fmt::format("{}{}{}", named ? map : weight, named ? weight : map, note));
  }
}

// Item 4.
TEST(DisagreeingRanksTest, AreAnErrorWhateverIsReadOfThem) {
  const TestTensor first = Counting("w", {2, 2});
  const std::vector<std::pair<const char*, TestTensor>> rows = {
      {"another dtype of the same size", {"w", DType::kUInt8, {2, 2}, first.content}},
      {"a dtype to be promoted", {"w", DType::kInt16, {2, 2}, first.content + first.content}},
      {"another shape that could be glued", Counting("w", {2, 3})},
      {"another number of dims", Counting("w", {4})},
  };
  for (const ParameterLayout& target : {MakeLayout({1}, {{-1, -1}}), MakeLayout({2}, {{0, -1}})}) {
    for (const auto& [name, second] : rows) {
      ConversionFolder folder({{"w", MakeLayout({2}, {{0, -1}})}}, {{"w", target}});
      folder.WriteRank(0, {first});
      folder.WriteRank(1, {second});
      const auto report = Convert(folder.options());
      EXPECT_EQ(report.status().code(), StatusCode::kMismatch) << name;
      EXPECT_THAT(report.status().message(), HasSubstr("rank_1/checkpoint_1.ckpt: parameter \"w\""))
          << name;
    }
  }
}

TEST(SharedParametersTest, HaveEachTargetStagesOwnLayout) {
  const ParameterLayout whole = MakeLayout({2}, {{-1, -1}});
  ConversionFolder folder({{"w", MakeLayout({1}, {{-1, -1}})}},
                          {{"0-w", MakeLayout({2}, {{0, -1}})},
                           {"1-w", MakeLayout({2}, {{-1, 0}})},
                           {"2-w", whole},
                           {"3-w", MakeLayout({2}, {{0, -1}})}});
  folder.WriteRank(0, {Counting("w", {2, 2})});
  RunConvert(folder);
  const TestTensor row0 = Part("w", {1, 2}, {0, 1});
  const TestTensor row1 = Part("w", {1, 2}, {2, 3});
  const std::vector<TestTensor> expected = {row0,
                                            row1,
                                            Part("w", {2, 1}, {0, 2}),
                                            Part("w", {2, 1}, {1, 3}),
                                            Counting("w", {2, 2}),
                                            Counting("w", {2, 2}),
                                            row0,
                                            row1};
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    EXPECT_THAT(folder.Target(static_cast<int64_t>(rank)), ElementsAre(expected[rank])) << rank;
  }
}

}  // namespace
}  // namespace reshard::beyond_mindspore_test
