#include "src/mindspore/strategy_writer.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/says.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::strategy_recoding_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kJson = StrategyEncoding::kJson;
constexpr auto kProtobuf = StrategyEncoding::kProtobuf;

RecodedStrategy Recode(const std::string& bytes, StrategyEncoding encoding) {
  auto recoded = RecodeStrategy("s", bytes, encoding);
  EXPECT_TRUE(recoded.ok()) << recoded.status().message();
  return recoded.ok() ? std::move(recoded).value() : RecodedStrategy();
}

std::vector<NamedLayout> LayoutsOf(const std::string& bytes) {
  const auto file = ParseStrategy("s", bytes);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::vector<NamedLayout>(file->layouts.begin(), file->layouts.end())
                   : std::vector<NamedLayout>();
}

TEST(StrategyRecodingTest, JsonIsWhatJsonDumpsWrites) {
  ParameterLayout nested = MakeLayout({2, 2, 2}, {{-1}, {2, 0}});
  nested.opt_weight_shard_step = 2;
  nested.opt_weight_shard_size = -1;
  nested.param_split_shape = {{4, 4}};
  const std::string protobuf =
      ProtobufStrategy(3, {{"w", MakeLayout({2, 4}, {{1, -1}})}, {"n\xc3\xb6", nested}});
  EXPECT_EQ(Recode(protobuf, kJson).bytes,
            R"({"current_stage": 3, "parallel_strategy_item": {"MatMul-op3": {"stage": 3, )"
            R"("parallel_strategy": [[2, 1]]}}, "parallel_layout_item": {"w": )"
            R"({"dev_matrix": [2, 4], "tensor_map": [1, -1], "field": 0, )"
            R"("opt_weight_shard_step": 0, "opt_weight_shard_size": 0}, "n\u00f6": )"
            R"({"dev_matrix": [2, 2, 2], "tensor_map": [[-1], [2, 0]], "field": 0, )"
            R"("opt_weight_shard_step": 2, "opt_weight_shard_size": -1, )"
            R"("param_split_shape": [4, 4]}}})");
}

// There and back again: every strategy file that MindSpore's conversions were tried with.
TEST(StrategyRecodingTest, GoldenFilesComeBackAsTheyWere) {
  int protobufs = 0;
  int jsons = 0;
  const std::filesystem::path data = std::filesystem::path(RESHARD_TESTS_DIR) / "golden/data";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || path.find("strategy") == std::string::npos) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!ParseStrategy(path, bytes).ok()) continue;
    if (StrategyEncodingOf(bytes) == kJson) {
      ++jsons;
      std::vector<NamedLayout> expected = LayoutsOf(bytes);
      for (NamedLayout& named : expected) named.layout.tensor_shape.reset();
      EXPECT_EQ(LayoutsOf(Recode(bytes, kProtobuf).bytes), expected) << path;
    } else {
      const RecodedStrategy json = Recode(bytes, kJson);
      if (!json.warnings.empty()) continue;  // names that stand twice
      ++protobufs;
      const std::string back = Recode(json.bytes, kProtobuf).bytes;
      EXPECT_EQ(Recode(back, kJson).bytes, json.bytes) << path;
      // Those of the merging are in forms that no writer chooses.
      if (path.find("strategy_merge") == std::string::npos) {
        EXPECT_EQ(back, bytes) << path;
      }
    }
  }
  EXPECT_GT(protobufs, 50);
  EXPECT_GT(jsons, 10);
}

TEST(StrategyRecodingTest, AFileInTheFormAskedForStaysAsItIs) {
  const std::string json = " " + JsonStrategy(0, {{"w", MakeLayout({2}, {{0}})}});
  EXPECT_EQ(Recode(json, kJson).bytes, json);
  const std::string protobuf =
      ProtobufStrategy(0, {{"w", MakeLayout({2}, {{0}})}}) + NumberField(99, 1);
  EXPECT_EQ(Recode(protobuf, kProtobuf).bytes, protobuf);
}

TEST(StrategyRecodingTest, WhatTheOtherFormCannotHoldIsTold) {
  const std::string json =
      R"({"parallel_strategy_item": {"n": {"stage": 1, "note": {"a": [1]}}}, )"
      R"("parallel_layout_item": {)"
      R"("w": {"dev_matrix": [2], "tensor_map": [0], "tensor_shape": [4], "extra": [[]]}, )"
      R"("b": {"dev_matrix": [2], "tensor_map": [0], "tensor_shape": [4], "extra": 1}}})";
  EXPECT_THAT(
      Recode(json, kProtobuf).warnings,
      ElementsAre(Says(WarningCode::kDropped,
                       "tensor_shape of 2 parameters is dropped: protobuf has no place for it"),
                  Says(WarningCode::kDropped,
                       R"(dropped, as protobuf has no place for them: "extra", "note")")));
  const ParameterLayout layout = MakeLayout({2}, {{0}});
  const std::string twice = ProtobufStrategy(0, {{"w", layout}, {"v", layout}, {"w", layout}});
  EXPECT_THAT(
      Recode(twice, kJson).warnings,
      ElementsAre(Says(WarningCode::kRepeatedNames, HasSubstr("items with repeated names: 1;"))));
  EXPECT_THAT(Recode(ProtobufStrategy(0, {{"w", layout}}), kJson).warnings, IsEmpty());
}

TEST(StrategyRecodingTest, OneDimensionThatSeveralAxesCut) {
  const std::string protobuf =
      NumberField(1, 0) +
      BlockField(3,
                 BlockField(1, "w") +
                     BlockField(2, BlockField(1, NumberField(1, 2) + NumberField(1, 2)) +
                                       BlockField(2, NumberField(1, 1) + NumberField(1, 0)) +
                                       BlockField(2, "") + BlockField(3, "") + BlockField(4, "") +
                                       NumberField(5, 0) + NumberField(6, 0) + NumberField(7, 0)));
  const std::string json = Recode(protobuf, kJson).bytes;
  EXPECT_THAT(json, HasSubstr(R"("tensor_map": [[1, 0]])"));
  EXPECT_EQ(Recode(json, kProtobuf).bytes, protobuf);

  // A Strategy tells it from a flat map by the shape.
  ParameterLayout layout = MakeLayout({2, 2}, {{1, 0}});
  for (const auto& [shape, map] : std::vector<std::pair<Shape, std::string>>{
           {{8}, R"("tensor_map": [[1, 0]])"}, {{2, 4}, R"("tensor_map": [1, 0])"}}) {
    layout.tensor_shape = shape;
    const auto encoded = EncodeStrategy(*Strategy::Make({{"w", layout}}), kJson);
    ASSERT_TRUE(encoded.ok()) << encoded.status().message();
    EXPECT_THAT(*encoded, HasSubstr(map));
    EXPECT_EQ(LayoutsOf(*encoded).at(0).layout.tensor_map, layout.tensor_map);
  }
}

TEST(StrategyRecodingTest, NumbersAndNamesThatDoNotFit) {
  struct Row {
    const char* layout;
    const char* message;
  };
  const Row rows[] = {
      {R"({"dev_matrix": [4294967296], "tensor_map": [0]})",
       "s: parameter \"w\": dev_matrix: expected an integer of 32 bits that is not negative, as "
       "protobuf holds it, found 4294967296"},
      {R"({"dev_matrix": [2], "tensor_map": [2147483648]})",
       "tensor_map: expected an integer of 32 bits, as protobuf holds it, found 2147483648"},
      {R"({"dev_matrix": [2], "tensor_map": [[0], [-2147483649]]})", "found -2147483649"},
      {R"({"dev_matrix": [2], "tensor_map": [0], "opt_weight_shard_size": 99999999999})",
       "opt_weight_shard_size: expected an integer of 32 bits"},
  };
  for (const Row& row : rows) {
    const auto recoded = RecodeStrategy(
        "s", std::string(R"({"parallel_layout_item": {"w": )") + row.layout + "}}", kProtobuf);
    ASSERT_FALSE(recoded.ok()) << row.layout;
    EXPECT_EQ(recoded.status().code(), StatusCode::kCorrupt) << row.layout;
    EXPECT_THAT(recoded.status().message(), HasSubstr(row.message)) << row.layout;
  }
  const std::string layouts =
      R"("parallel_layout_item": {"w": {"dev_matrix": [2], "tensor_map": [0]}})";
  for (const std::string& item : {std::string("[2]"), std::string("2"), std::string(R"([[-1]])"),
                                  std::string(R"([["a"]])")}) {
    const auto recoded =
        RecodeStrategy("s",
                       R"({"parallel_strategy_item": {"n": {"stage": 0, "parallel_strategy": )" +
                           item + "}}, " + layouts + "}",
                       kProtobuf);
    ASSERT_FALSE(recoded.ok()) << item;
    EXPECT_THAT(recoded.status().message(), HasSubstr("s: node \"n\": parallel_strategy: expected"))
        << item;
  }
  const auto not_utf8 =
      RecodeStrategy("s", ProtobufStrategy(0, {{"w\xff", MakeLayout({2}, {{0}})}}), kJson);
  ASSERT_FALSE(not_utf8.ok());
  EXPECT_THAT(not_utf8.status().message(), HasSubstr("is not UTF-8, so JSON cannot hold it"));
}

}  // namespace
}  // namespace reshard::strategy_recoding_test
