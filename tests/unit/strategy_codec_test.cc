#include "src/mindspore/strategy_codec.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::strategy_codec_test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

StrategyFile Parsed(const std::string& bytes) {
  auto file = ParseStrategy("s.ckpt", bytes);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? std::move(file).value() : StrategyFile{};
}

// The ParallelLayouts message of a layout item.
std::string Item(const std::string& name, const std::string& layouts) {
  return BlockField(3, BlockField(1, name) + BlockField(2, layouts));
}
std::string Numbers(uint32_t field, const std::vector<uint64_t>& numbers) {
  std::string bytes;
  for (const uint64_t number : numbers) bytes += NumberField(1, number);
  return BlockField(field, bytes);
}

ParameterLayout FullLayout() {
  ParameterLayout layout = MakeLayout({2, 4}, {{1, -1}});
  layout.opt_weight_shard_step = 4;
  layout.opt_weight_shard_size = -1;
  layout.field = 3;
  layout.param_split_shape = {{3, 5}};
  layout.indices_offset = {{0, 3}};
  return layout;
}

TEST(StrategyCodecTest, ReadsBothEncodings) {
  const std::vector<NamedLayout> layouts = {
      {"dense.weight", FullLayout()},
      {"nested", MakeLayout({2, 2, 2}, {{2, 0}, {-1}, {1}})},
      {"scalar", MakeLayout({8}, {{}})},
      {"one device", MakeLayout({}, {{-1}})},
  };
  for (const std::string& bytes : {ProtobufStrategy(7, layouts), JsonStrategy(7, layouts)}) {
    const StrategyFile file = Parsed(bytes);
    EXPECT_EQ(file.path, "s.ckpt");
    EXPECT_EQ(file.first_item_stage, 7);
    EXPECT_THAT(file.layouts, ElementsAreArray(layouts));
  }
}

TEST(StrategyCodecTest, TellsEncodingsApartByContent) {
  EXPECT_EQ(StrategyEncodingOf(" \r\n\t{}"), StrategyEncoding::kJson);
  EXPECT_EQ(StrategyEncodingOf("\x08{"), StrategyEncoding::kProtobuf);
  EXPECT_EQ(StrategyEncodingOf("  "), StrategyEncoding::kProtobuf);
  EXPECT_EQ(StrategyEncodingOf(""), StrategyEncoding::kProtobuf);
  EXPECT_EQ(Parsed("\n " + JsonStrategy(0, {{"w", FullLayout()}})).layouts.size(), 1U);
}

TEST(StrategyCodecTest, RequiredFieldsMayBeMissing) {
  const std::string layouts = Numbers(1, {2}) + Numbers(2, {0});
  const StrategyFile protobuf = Parsed(BlockField(3, BlockField(2, layouts)));
  EXPECT_EQ(protobuf.first_item_stage, std::nullopt);
  EXPECT_THAT(protobuf.layouts, ElementsAre(NamedLayout{"", MakeLayout({2}, {{0}})}));
  const StrategyFile json =
      Parsed(R"({"parallel_layout_item": {"w": {"tensor_map": [0], "dev_matrix": [2]}}})");
  EXPECT_EQ(json.first_item_stage, std::nullopt);
  EXPECT_THAT(json.layouts, ElementsAre(NamedLayout{"w", MakeLayout({2}, {{0}})}));
}

TEST(StrategyCodecTest, AStrategyItemWithoutStageIsOfStage0) {
  const std::string layout = Item("w", Numbers(1, {2}) + Numbers(2, {0}));
  EXPECT_EQ(Parsed(BlockField(2, BlockField(1, "node")) + layout).first_item_stage, 0);
  EXPECT_EQ(Parsed(R"({"parallel_strategy_item": {"node": {}, "other": {"stage": 3}},
                       "parallel_layout_item": {"w": {"tensor_map": [], "dev_matrix": []}}})")
                .first_item_stage,
            0);
}

TEST(StrategyCodecTest, ReadsProtobufOfAnyForm) {
  const std::string packed = BlockField(1, BlockField(1, "\x02\x04"));
  const std::string later = NumberField(90, 5) + BlockField(91, "later");
  struct Row {
    const char* name;
    std::string bytes;
    ParameterLayout expected;
  };
  const Row rows[] = {
      {"packed numbers", Item("w", packed + Numbers(2, {1, 0})), MakeLayout({2, 4}, {{1, 0}})},
      {"map before matrix", Item("w", Numbers(2, {0}) + Numbers(1, {2})), MakeLayout({2}, {{0}})},
      {"name behind the layout",
       BlockField(3, BlockField(2, Numbers(1, {2}) + Numbers(2, {0})) + BlockField(1, "w")),
       MakeLayout({2}, {{0}})},
      {"layout in two pieces",
       BlockField(
           3, BlockField(1, "w") + BlockField(2, Numbers(1, {2})) + BlockField(2, Numbers(2, {0}))),
       MakeLayout({2}, {{0}})},
      {"unknown fields everywhere",
       later + BlockField(3, BlockField(1, "w") + later +
                                 BlockField(2, later + Numbers(1, {2}) + Numbers(2, {0}))),
       MakeLayout({2}, {{0}})},
      {"minus one in ten bytes and in five",
       Item("w", Numbers(1, {2}) + Numbers(2, {~uint64_t{0}, 0xffffffff})),
       MakeLayout({2}, {{-1, -1}})},
      {"an empty map behind the only nested one",
       Item("w", Numbers(1, {2, 2}) + Numbers(2, {0, 1}) + Numbers(2, {})),
       MakeLayout({2, 2}, {{0, 1}})},
      {"empty maps only", Item("w", Numbers(1, {2}) + Numbers(2, {}) + Numbers(2, {})),
       MakeLayout({2}, {{}})},
      {"the first of two matrices", Item("w", Numbers(1, {2}) + Numbers(1, {3}) + Numbers(2, {0})),
       MakeLayout({2}, {{0}})},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(Parsed(row.bytes).layouts, ElementsAre(NamedLayout{"w", row.expected})) << row.name;
  }
}

// Layouts that repeat the bytes of the one before are not parsed again.
TEST(StrategyCodecTest, LayoutsMayRepeatOneAnother) {
  const std::string a = Numbers(1, {2, 4}) + Numbers(2, {1, 0});
  const std::string b = Numbers(1, {8}) + Numbers(2, {0});
  const std::string of_unusual_form =
      BlockField(3, BlockField(2, b) + BlockField(1, "unusual") + NumberField(90, 5));
  const std::string bytes = Item("a1", a) + Item("a2", a) + Item(std::string(200, 'n'), a) +
                            Item("b1", b) + Item("b2", b) + Item("a3", a) + of_unusual_form +
                            Item("b3", b) + Item("a4", a) + Item("a5", a);
  const ParameterLayout first = MakeLayout({2, 4}, {{1, 0}});
  const ParameterLayout second = MakeLayout({8}, {{0}});
  EXPECT_THAT(Parsed(bytes).layouts,
              ElementsAre(NamedLayout{"a1", first}, NamedLayout{"a2", first},
                          NamedLayout{std::string(200, 'n'), first}, NamedLayout{"b1", second},
                          NamedLayout{"b2", second}, NamedLayout{"a3", first},
                          NamedLayout{"unusual", second}, NamedLayout{"b3", second},
                          NamedLayout{"a4", first}, NamedLayout{"a5", first}));
  // One that says nothing is refused, also behind one of unusual form.
  EXPECT_FALSE(ParseStrategy("s.ckpt", of_unusual_form + Item("w", "")).ok());
}

TEST(StrategyCodecTest, ReadsJsonOfAnyForm) {
  struct Row {
    const char* name;
    std::string item;
    ParameterLayout expected;
  };
  ParameterLayout shaped = MakeLayout({2}, {{0}});
  shaped.tensor_shape = Shape{4, 0};
  ParameterLayout pieces = MakeLayout({2}, {{0}});
  pieces.param_split_shape = {{1}, {2, 3}};
  const Row rows[] = {
      {"flat and nested entries", R"("dev_matrix": [2, 2, 2], "tensor_map": [0, [1, 2], -1])",
       MakeLayout({2, 2, 2}, {{0}, {1, 2}, {-1}})},
      {"an empty list behind the only nested one",
       R"("dev_matrix": [2, 2], "tensor_map": [[0, 1], []])", MakeLayout({2, 2}, {{0, 1}})},
      {"tensor_shape is kept", R"("dev_matrix": [2], "tensor_map": [0], "tensor_shape": [4, 0])",
       shaped},
      {"nested param_split_shape",
       R"("dev_matrix": [2], "tensor_map": [0], "param_split_shape": [[1], [2, 3]])", pieces},
      {"a key twice", R"("dev_matrix": [4, 4], "dev_matrix": [2], "tensor_map": [0])",
       MakeLayout({2}, {{0}})},
      {"unknown keys",
       R"("a": {"dev_matrix": "x", "b": [[{}, null]]}, "dev_matrix": [2], "c": 1.5,
          "tensor_map": [0], "d": [true], "e": "tensor_map")",
       MakeLayout({2}, {{0}})},
  };
  for (const Row& row : rows) {
    const StrategyFile file = Parsed(R"({"x": {"parallel_layout_item": 1}, "current_stage": "?",)"
                                     R"( "parallel_layout_item": {"w": {)" +
                                     row.item + "}}}");
    EXPECT_THAT(file.layouts, ElementsAre(NamedLayout{"w", row.expected})) << row.name;
  }
}

TEST(StrategyCodecTest, ASectionThatComesAgainCountsAlone) {
  const StrategyFile file = Parsed(R"({
    "parallel_strategy_item": {"n": {"stage": 1}},
    "parallel_layout_item": {"old": {"dev_matrix": [2], "tensor_map": [0]}},
    "parallel_strategy_item": {},
    "parallel_layout_item": {"new": {"dev_matrix": [4], "tensor_map": [0]}}})");
  EXPECT_EQ(file.first_item_stage, std::nullopt);
  EXPECT_THAT(file.layouts, ElementsAre(NamedLayout{"new", MakeLayout({4}, {{0}})}));
}

// As in Python, whose dictionaries keep the place of the first and the value of the last.
TEST(StrategyCodecTest, ANodeThatComesAgainCountsAsItStandsTheSecondTime) {
  const std::string layouts =
      R"("parallel_layout_item": {"w": {"dev_matrix": [2], "tensor_map": [0]}}})";
  EXPECT_EQ(Parsed(R"({"parallel_strategy_item": {"n": {"stage": 1}, "m": {"stage": 2},)"
                   R"( "n": {"stage": 3}}, )" +
                   layouts)
                .first_item_stage,
            3);
}

TEST(StrategyCodecTest, NamesAreBytesInProtobufAndTextInJson) {
  const std::string odd = std::string("a\0\xff\"", 4);
  EXPECT_EQ(Parsed(ProtobufStrategy(0, {{odd, FullLayout()}})).layouts[0].name, odd);
  EXPECT_EQ(Parsed(R"({"parallel_layout_item": {"\u00e9\ud83d\ude00": )"
                   R"({"dev_matrix": [2], "tensor_map": [0]}}})")
                .layouts[0]
                .name,
            "\xc3\xa9\xf0\x9f\x98\x80");
}

TEST(StrategyCodecTest, DeepNestingOfIgnoredValuesCostsNoStack) {
  constexpr size_t kDepth = 4'000'000;
  const std::string deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  const StrategyFile file =
      Parsed(R"({"ignored": )" + deep +
             R"(, "parallel_layout_item": {"w": {"dev_matrix": [2], "tensor_map": [0]}}})");
  EXPECT_EQ(file.layouts.size(), 1U);
}

}  // namespace
}  // namespace reshard::strategy_codec_test
