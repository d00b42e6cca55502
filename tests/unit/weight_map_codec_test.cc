#include "format/weight_map/weight_map_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"

namespace reshard::weight_map_codec_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<WeightMap> Parse(const std::string& text, const MemoryCheck& memory = {}) {
  const FileBytes file = {"dir/index.json", text.size(),
                          [&text](uint64_t offset, std::span<std::byte> out) {
                            std::transform(
                                text.begin() + static_cast<std::ptrdiff_t>(offset),
                                text.begin() + static_cast<std::ptrdiff_t>(offset + out.size()),
                                out.begin(), [](char c) { return static_cast<std::byte>(c); });
                            return Status();
                          },
                          [](ByteRange /*range*/) { return Status(); }, false};
  return ParseWeightMap(file, memory);
}

std::string FailureOf(const std::string& text) {
  const Result<WeightMap> map = Parse(text);
  EXPECT_EQ(map.status().code(), StatusCode::kCorrupt) << text;
  EXPECT_THAT(map.status().message(), HasSubstr("dir/index.json: ")) << text;
  return map.status().message();
}

TEST(WeightMapTest, ReadsAnIndex) {
  const Result<WeightMap> map = Parse(
      R"({"metadata": {"total_size": 12, "total_parameters": 3.0, "more": [{"a": "b"}]},
          "weight_map": {"b": "m-10.safetensors", "\u00e9": "m-2.safetensors",
                         "a": "sub/m-1.safetensors"}, "other": {"x": ["y", {"z": "w"}]}})");
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_THAT(map->files,
              ElementsAre("m-2.safetensors", "m-10.safetensors", "sub/m-1.safetensors"));
  ASSERT_EQ(map->weights.size(), 3U);
  EXPECT_EQ(map->weights[0].name, "a");
  EXPECT_EQ(map->weights[2].name, "\u00e9");
  EXPECT_EQ(map->Find("b")->file, 1U);
  EXPECT_EQ(map->Find("a")->file, 2U);
  EXPECT_EQ(map->Find("\u00e9")->file, 0U);
  EXPECT_EQ(map->Find("c"), nullptr);
  EXPECT_EQ(map->total_size, 12U);
}

TEST(WeightMapTest, ReadsAFlatMapWhoseTensorsHaveTheNamesOfMembers) {
  const Result<WeightMap> map = Parse(
      R"({"w": "a.safetensors", "metadata": "a.safetensors", "weight_map": "b.safetensors"})");
  ASSERT_TRUE(map.ok()) << map.status().message();
  EXPECT_EQ(map->weights.size(), 3U);
  EXPECT_EQ(map->total_size, std::nullopt);
}

TEST(WeightMapTest, RefusesWhatIsNoIndex) {
  EXPECT_THAT(FailureOf(""), HasSubstr("expected JSON"));
  EXPECT_THAT(FailureOf(R"({"a": "b.safetensors"})" + std::string("\0", 1)),
              HasSubstr("a zero byte at byte 23"));
  EXPECT_THAT(FailureOf("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(FailureOf("{}"), HasSubstr("names no tensor"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {}})"), HasSubstr("names no tensor"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"a": 1}})"), HasSubstr("found a number"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"a": {"b": "c.safetensors"}}})"),
              HasSubstr("found an object"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"a": ["c.safetensors"]}})"),
              HasSubstr("found an array"));
  EXPECT_THAT(FailureOf(R"({"a": "b.safetensors", "c": 1})"), HasSubstr("\"c\": expected"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"a": "b.safetensors"}, "c": "b.safetensors"})"),
              HasSubstr("names beside it"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"a": "b.safetensors", "a": "c.safetensors"}})"),
              HasSubstr("\"a\" occurs twice"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"a": "b.safetensors"}, "weight_map": {}})"),
              HasSubstr("\"weight_map\" occurs twice"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"a": "b.safetensors"}} x)"), HasSubstr("expected JSON"));
  EXPECT_THAT(FailureOf(R"({"weight_map": {"\ud800": "b.safetensors"}})"),
              HasSubstr("expected JSON"));
  EXPECT_THAT(FailureOf(R"({"x": )" + std::string(100, '[')), HasSubstr("nested"));
}

TEST(WeightMapTest, RefusesPathsThatAreNotBelowTheFolder) {
  for (const std::string path :
       {"../a.safetensors", "/a.safetensors", "a/../../b.safetensors", "./a.safetensors",
        "a//b.safetensors", "C:a.safetensors", "a\\\\b.safetensors", "a\\u0000.safetensors",
        "a/.safetensors/..", "a.pt", "", "a.safetensors/"}) {
    EXPECT_THAT(FailureOf(R"({"weight_map": {"w": ")" + path + R"("}})"), HasSubstr("\"w\": "));
  }
  EXPECT_THAT(FailureOf(R"({"w": ")" + std::string(5000, 'a') + R"(.safetensors"})"),
              HasSubstr("longer than a path"));
}

TEST(WeightMapTest, AsksWhetherThereIsMemory) {
  std::string text = "{";
  for (int i = 0; i < 5000; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(": "a.safetensors")";
  }
  const Result<WeightMap> map =
      Parse(text + "}", [](uint64_t /*more*/) { return ResourceExhaustedError("no memory"); });
  EXPECT_EQ(map.status().code(), StatusCode::kResourceExhausted);
}

// As json.dumps has them: {"metadata": ..., "weight_map": ...}, indent=4.
TEST(WeightMapTest, WritesAParamNameMapInOrder) {
  const std::vector<std::string> files = {"part0.safetensors", "part1.safetensors"};
  const std::vector<MappedWeight> weights = {
      {"b", 0}, {"a\"\\\n\x01\x7f/", 0}, {"\u00e9\U0001F600", 1}};
  const Result<std::string> text = EncodeParamNameMap(weights, files, {7, 28});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, R"({
    "metadata": {
        "total_size": 28
    },
    "weight_map": {
        "b": "part0.safetensors",
        "a\"\\\n\u0001\u007f/": "part0.safetensors",
        "\u00e9\ud83d\ude00": "part1.safetensors"
    }
})");
}

TEST(WeightMapTest, WritesAHuggingFaceIndexByName) {
  const std::vector<std::string> files = {"1.safetensors", "2.safetensors"};
  const Result<std::string> text =
      EncodeHuggingFaceIndex({{"b", 0}, {"\uffff", 0}, {"a", 1}}, files, {7, 28});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, R"({
  "metadata": {
    "total_parameters": 7,
    "total_size": 28
  },
  "weight_map": {
    "a": "2.safetensors",
    "b": "1.safetensors",
    "\uffff": "1.safetensors"
  }
}
)");
}

TEST(WeightMapTest, WritesNoNameThatIsNotUtf8) {
  const std::vector<std::string> files = {"1.safetensors"};
  for (const std::string_view name :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_EQ(EncodeHuggingFaceIndex({{name, 0}}, files, {}).status().code(),
              StatusCode::kMismatch);
  }
}

}  // namespace
}  // namespace reshard::weight_map_codec_test
