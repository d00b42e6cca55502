#include "src/mindspore/strategy_loader.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"

namespace reshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ParameterLayout kLayout = MakeLayout({2}, {{0}});

std::string Merged(const std::vector<StageFile>& files) {
  auto merged = MergeStageFiles("folder", files);
  EXPECT_TRUE(merged.ok()) << merged.status().message();
  return merged.ok() ? std::move(merged).value().bytes : "";
}

TEST(StrategyMergeTest, ProtobufIsAllStrategyItemsThenAllLayoutItems) {
  const std::vector<StageFile> files = {
      {"b", ProtobufStrategy(1, {{"y", kLayout}}), {}},
      {"a", ProtobufStrategy(0, {{"x", kLayout}, {"layer-norm", kLayout}}), {}}};
  EXPECT_EQ(Merged(files),
            NumberField(1, 1) + StrategyItemField("MatMul-op0", 0) +
                StrategyItemField("MatMul-op1", 1) + LayoutItemField("0-x", kLayout) +
                LayoutItemField("0-layer-norm", kLayout) + LayoutItemField("1-y", kLayout));
}

TEST(StrategyMergeTest, AParameterThatAFileListsTwiceStaysTwiceInProtobuf) {
  EXPECT_EQ(Merged({{"a", ProtobufStrategy(0, {{"x", kLayout}, {"x", kLayout}}), {}}}),
            NumberField(1, 1) + StrategyItemField("MatMul-op0", 0) +
                LayoutItemField("0-x", kLayout) + LayoutItemField("0-x", kLayout));
}

TEST(StrategyMergeTest, JsonIsWhatJsonDumpsWrites) {
  const std::string a =
      R"({"parallel_layout_item":{"x":{"dev_matrix":[2],"tensor_map":[0],"e":[ ]},"y":)"
      R"({"tensor_map":[0],"dev_matrix":[ 2 ]},"x":{"dev_matrix":[2],"tensor_map":[-1]}},)"
      R"("parallel_strategy_item":{"n":{"stage":0},"m":{"stage":0}},"other":{"z":[1]}})";
  const std::string b =
      R"({"parallel_strategy_item":{"o":{"stage":1},"n":{"stage":1,"é":"\/"}},)"
      R"("parallel_layout_item":{"x":{"dev_matrix":[2],"tensor_map":[0],"f":1.0}}})";
  EXPECT_EQ(Merged({{"b", b, {}}, {"a", a, {}}}),
            R"({"current_stage": 1, "parallel_strategy_item": {"n": {"stage": 1, "\u00e9": "/"}, )"
            R"("m": {"stage": 0}, "o": {"stage": 1}}, "parallel_layout_item": )"
            R"({"0-x": {"dev_matrix": [2], "tensor_map": [-1]}, )"
            R"("0-y": {"tensor_map": [0], "dev_matrix": [2]}, )"
            R"("1-x": {"dev_matrix": [2], "tensor_map": [0], "f": 1.0}}})");
}

TEST(StrategyMergeTest, JsonNumbersAreThoseOfPython) {
  struct Row {
    const char* in;
    const char* out;
  };
  const Row rows[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-17", "-17"},
      {"18446744073709551615", "18446744073709551615"},
      {"-9223372036854775809", "-9223372036854775809"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"1.50", "1.5"},
      {"-0.0", "-0.0"},
      {"2e0", "2.0"},
      {"0.1", "0.1"},
      {"1E15", "1000000000000000.0"},
      {"1e16", "1e+16"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"5e-324", "5e-324"},
  };
  for (const Row& row : rows) {
    const std::string merged =
        Merged({{"a",
                 std::string(R"({"parallel_strategy_item": {"n": {"a": )") + row.in +
                     R"(}}, "parallel_layout_item": {"x": {"dev_matrix": [], "tensor_map": []}}})",
                 {}}});
    EXPECT_THAT(merged, HasSubstr(std::string(R"({"n": {"a": )") + row.out + "}}")) << row.in;
  }
}

TEST(StrategyMergeTest, JsonKeepsValuesOfAnyKindAndDepth) {
  constexpr size_t kDepth = 1'000'000;
  const std::string value = R"([{"a": [], "b": {}, "c": [1, null, [true, false]], "d": ""}, )" +
                            std::string(kDepth, '[') + std::string(kDepth, ']') + "]";
  const std::string merged =
      Merged({{"a",
               R"({"parallel_strategy_item": {"n": {"v": )" + value +
                   R"(}}, "parallel_layout_item": {"x": {"dev_matrix": [], "tensor_map": []}}})",
               {}}});
  EXPECT_EQ(merged, R"({"current_stage": 1, "parallel_strategy_item": {"n": {"v": )" + value +
                        R"(}}, "parallel_layout_item": {"0-x": {"dev_matrix": [], )"
                        R"("tensor_map": []}}})");
}

TEST(StrategyMergeTest, SkipsAMergedFileAndARepeatedStage) {
  const std::string stage = ProtobufStrategy(0, {{"x", kLayout}});
  const std::string merged = Merged({{"a", stage, {}}});
  const std::string other_node = StrategyItemField("other", 0) + LayoutItemField("x", kLayout);
  const auto again =
      MergeStageFiles("folder", {{"a", stage, {"copy"}}, {"m", merged, {}}, {"z", other_node, {}}});
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->bytes, merged);
  EXPECT_EQ(again->stages, 1);
  EXPECT_THAT(again->notes, ElementsAre("skipped 1 strategy file, merged already: m",
                                        "skipped 2 strategy files, the same as another of their "
                                        "stage: copy, z"));
}

TEST(StrategyMergeTest, RefusesWhatIsNoSetOfStages) {
  struct Row {
    const char* name;
    std::vector<StageFile> files;
    StatusCode code;
    std::string message;
  };
  const std::string x = ProtobufStrategy(0, {{"x", kLayout}});
  const Row rows[] = {
      {"a stage missing",
       {{"a", x, {}}, {"c", ProtobufStrategy(2, {{"y", kLayout}}), {}}},
       StatusCode::kMismatch,
       "folder: missing stage 1; found 0, 2"},
      {"two files of one stage",
       {{"a", x, {}}, {"b", ProtobufStrategy(0, {{"y", kLayout}}), {}}},
       StatusCode::kMismatch,
       "a and b are both of stage 0 but differ: only the first has \"x\""},
      {"merged already",
       {{"m", Merged({{"a", x, {}}}), {}}},
       StatusCode::kMismatch,
       "folder: expected the strategy files of the stages, found only merged ones"},
      {"no strategy item",
       {{"a", LayoutItemField("x", kLayout), {}}},
       StatusCode::kMismatch,
       "a: found no strategy item"},
      {"weights among them",
       {{"a", x, {}}, {"w", TensorValue("w", "Int8", {1}, "x"), {}}},
       StatusCode::kCorrupt,
       "w: expected a strategy file, found a MindSpore checkpoint (weights)"},
  };
  for (const Row& row : rows) {
    const auto merged = MergeStageFiles("folder", row.files);
    ASSERT_FALSE(merged.ok()) << row.name;
    EXPECT_EQ(merged.status().code(), row.code) << row.name;
    EXPECT_THAT(merged.status().message(), HasSubstr(row.message)) << row.name;
  }
}

}  // namespace
}  // namespace reshard
