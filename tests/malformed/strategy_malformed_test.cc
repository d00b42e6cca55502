// Strategy files with one thing wrong in each row.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "src/mindspore/strategy_codec.h"
#include "src/mindspore/strategy_loader.h"
#include "tests/support/checkpoint_bytes.h"
#include "tests/support/strategy_bytes.h"

namespace reshard::strategy_malformed_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::vector<NamedLayout> kLayouts = {{"w", MakeLayout({2, 2}, {{1, -1}})},
                                           {"b", MakeLayout({4}, {{0}})}};

struct Row {
  const char* name;
  std::string bytes;
  std::string message;
};

void ExpectRejected(const Row& row) {
  const auto file = ParseStrategy("s.ckpt", row.bytes);
  ASSERT_FALSE(file.ok()) << row.name;
  EXPECT_EQ(file.status().code(), StatusCode::kCorrupt) << row.name;
  EXPECT_THAT(file.status().message(), StartsWith("s.ckpt: ")) << row.name;
  EXPECT_THAT(file.status().message(), HasSubstr(row.message)) << row.name;
}

// A JSON strategy of one parameter whose layout is `item`.
std::string JsonLayout(const std::string& item) {
  return R"({"parallel_layout_item": {"w": )" + item + "}}";
}

TEST(StrategyMalformedTest, Protobuf) {
  const std::string good = ProtobufStrategy(0, kLayouts);
  const std::string last = LayoutItemField("b", kLayouts[1].layout);
  const std::string at_end = std::to_string(good.size());
  const std::string big(1 << 20, '\x01');
  const Row rows[] = {
      {"cut in the last item", good.substr(0, good.size() - 1),
       "found a field of " + std::to_string(last.size() - 2) + " bytes where " +
           std::to_string(last.size() - 3) + " are left; is the file cut off? at offset " +
           std::to_string(good.size() - last.size())},
      {"cut in a length", good + "\x1a\x80", "found a malformed length at offset " + at_end},
      {"cut in a key", good + "\x9a", "found bytes that begin no field at offset " + at_end},
      {"a zero byte", good + std::string(1, '\0'),
       "found bytes that begin no field at offset " + at_end},
      {"field number 0", good + Key(0, 2) + Varint(0), "begin no field at offset " + at_end},
      {"a key of more than 32 bits", good + Varint(uint64_t{1} << 40),
       "begin no field at offset " + at_end},
      {"an unknown wire type", good + Key(9, 7), "found a malformed field 9 at offset " + at_end},
      {"a length of 2^63", good + Key(3, 2) + Varint(uint64_t{1} << 63),
       "found a field of 9223372036854775808 bytes where 0 are left"},
      {"a length of 2^64 - 1", good + Key(8, 2) + Varint(~uint64_t{0}) + "x",
       "found a field of 18446744073709551615 bytes where 1 are left"},
      {"a length of eleven bytes", good + Key(3, 2) + Varint(5, 11) + "abcde",
       "found a malformed length at offset " + at_end},
      {"a group that does not end", good + Key(9, 3), "found a malformed field 9"},
      {"groups in groups", good + std::string(1'000'000, '\x4b'), "found a malformed field 9"},
      {"groups in groups of an item", good + BlockField(3, std::string(100'000, '\x4b')),
       "found a malformed item at offset " + at_end},
      {"an item that is no message", good + BlockField(3, "\x0a\x7f"),
       "found a malformed item at offset " + at_end},
      {"a strategy item that is no message", good + BlockField(2, "\x12\x7f"),
       "found a malformed item at offset " + at_end},
      {"numbers that are no message", good + BlockField(3, BlockField(2, BlockField(1, "\x08"))),
       "found a malformed item at offset " + at_end},
      {"an item too large", good + BlockField(3, BlockField(1, big)),
       "found an item of 1048580 bytes (more than 1048576) at offset " + at_end},
      {"no dev_matrix",
       good + BlockField(3, BlockField(1, "x\n") + BlockField(2, BlockField(2, NumberField(1, 0)))),
       "parameter \"x\\n\" at offset " + at_end +
           ": expected a layout with dev_matrix and tensor_map, found no dev_matrix"},
      {"no tensor_map",
       good + BlockField(3, BlockField(1, "x") + BlockField(2, BlockField(1, NumberField(1, 2)))),
       "found no tensor_map"},
      {"no parallel_layouts", good + BlockField(3, BlockField(1, "x")), "found no dev_matrix"},
      {"a dev_matrix of another wire type",
       good +
           BlockField(3, BlockField(1, "x") + BlockField(2, NumberField(1, 2) + BlockField(2, ""))),
       "found no dev_matrix"},
      {"garbage", "I am not a strategy", "expected a strategy file (protobuf or JSON), found "},
      {"blanks", " \n ", "expected a strategy file (protobuf or JSON), found "},
      {"no layouts", NumberField(1, 0) + StrategyItemField("node", 0),
       "expected a strategy file, found no layouts (parallel_layout_item) in its 20 bytes"},
  };
  for (const Row& row : rows) ExpectRejected(row);
}

TEST(StrategyMalformedTest, EveryTruncationIsRejectedOrLosesItems) {
  for (const std::string& good : {ProtobufStrategy(0, kLayouts), JsonStrategy(0, kLayouts)}) {
    for (size_t size = 0; size < good.size(); ++size) {
      const auto file = ParseStrategy("s.ckpt", good.substr(0, size));
      EXPECT_TRUE(!file.ok() || file->layouts.size() < kLayouts.size()) << size;
    }
  }
}

TEST(StrategyMalformedTest, EveryByteMayBeWrong) {
  for (const std::string& good : {ProtobufStrategy(0, kLayouts), JsonStrategy(0, kLayouts)}) {
    for (size_t i = 0; i < good.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string bytes = good;
        bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
        const auto file = ParseStrategy("s.ckpt", bytes);
        if (file.ok()) static_cast<void>(StrategyTables::FromFile(*file));
        static_cast<void>(MergeStageFiles("folder", {{"s.ckpt", bytes, {}}}));
      }
    }
  }
}

TEST(StrategyMalformedTest, Json) {
  const std::string good = JsonStrategy(0, kLayouts);
  const auto layout = [](const std::string& rest) {
    return JsonLayout(R"({"dev_matrix": [2], "tensor_map": [0], )" + rest + "}");
  };
  const Row rows[] = {
      {"cut off", good.substr(0, good.size() - 1),
       "expected JSON, found its end at byte " + std::to_string(good.size() - 1) +
           "; is the file cut off?"},
      {"a list", "[]", "expected a JSON object, found a list"},
      {"a list of items", " [{\"a\": 1}]", "expected a JSON object, found a list"},
      {"a byte order mark", "\xef\xbb\xbf" + good,
       "expected a strategy file (protobuf or JSON), found a byte order mark; save it as UTF-8 "
       "without one"},
      {"cut in a string", R"({"parallel_layout)", "expected JSON, found its end at byte 17"},
      {"a comma too many", R"({"a": 1,})", "expected JSON, found an error at byte 9, near \"1,}\""},
      {"more behind the end", good + "x",
       "found an error at byte " + std::to_string(good.size() + 1) + ", near \"0}}}x\""},
      {"a zero byte behind the end", good + std::string(1, '\0'),
       "expected JSON, found a zero byte at byte " + std::to_string(good.size() + 1)},
      {"not UTF-8", "{\"\xff\": 1}", "expected JSON, found an error at byte 3"},
      {"half a surrogate pair", R"({"\ud800": 1})", "expected JSON, found an error at byte 9"},
      {"a number of no size", R"({"a": 1e999})", "expected JSON, found an error at byte "},
      {"no layouts", R"({"current_stage": 0, "parallel_strategy_item": {}})",
       "expected a strategy file, found no layouts (parallel_layout_item) in its 50 bytes"},
      {"an empty object", "{}", "found no layouts"},
      {"layouts empty", R"({"parallel_layout_item": {}})", "found no layouts"},
      {"layouts a list", R"({"parallel_layout_item": []})",
       "parallel_layout_item: expected an object, found a list"},
      {"layouts null", R"({"parallel_layout_item": null})",
       "parallel_layout_item: expected an object, found null"},
      {"strategies a number", R"({"parallel_strategy_item": 3})",
       "parallel_strategy_item: expected an object, found 3"},
      {"a layout that is a list", JsonLayout("[2]"),
       "parameter \"w\": expected an object, found a list"},
      {"a layout that is text", JsonLayout("\"x\""),
       "parameter \"w\": expected an object, found \"x\""},
      {"a node that is a number", R"({"parallel_strategy_item": {"n": 1.5}})",
       "node \"n\": expected an object, found 1.5"},
      {"a stage of text", R"({"parallel_strategy_item": {"n": {"stage": "0"}}})",
       "node \"n\": stage: expected an integer that is not negative, found \"0\""},
      {"a stage below zero", R"({"parallel_strategy_item": {"n": {"stage": -1}}})",
       "node \"n\": stage: expected an integer that is not negative, found -1"},
      {"a stage in a list", R"({"parallel_strategy_item": {"n": {"stage": [0]}}})",
       "node \"n\": stage: expected an integer that is not negative, found a list"},
      {"no dev_matrix", JsonLayout(R"({"tensor_map": [0]})"),
       "parameter \"w\": expected a layout with dev_matrix and tensor_map, found no dev_matrix"},
      {"no tensor_map", JsonLayout(R"({"dev_matrix": [2]})"), "found no tensor_map"},
      {"dev_matrix a number", JsonLayout(R"({"dev_matrix": 2})"),
       "parameter \"w\": dev_matrix: expected a list of integers, found 2"},
      {"dev_matrix null", JsonLayout(R"({"dev_matrix": null})"),
       "parameter \"w\": dev_matrix: expected a list of integers, found null"},
      {"dev_matrix nested", JsonLayout(R"({"dev_matrix": [[2]]})"),
       "parameter \"w\": dev_matrix: expected an integer, found a list"},
      {"text in dev_matrix", JsonLayout(R"({"dev_matrix": ["2"]})"),
       "parameter \"w\": dev_matrix: expected an integer, found \"2\""},
      {"true in dev_matrix", JsonLayout(R"({"dev_matrix": [true]})"),
       "dev_matrix: expected an integer, found true"},
      {"a fraction in dev_matrix", JsonLayout(R"({"dev_matrix": [2.0]})"),
       "dev_matrix: expected an integer, found 2.0"},
      {"an object in dev_matrix", JsonLayout(R"({"dev_matrix": [{}]})"),
       "dev_matrix: expected an integer, found an object"},
      {"a number of 64 bits", JsonLayout(R"({"dev_matrix": [9223372036854775808]})"),
       "dev_matrix: expected an integer, found 9223372036854775808"},
      {"a number of many digits", JsonLayout(R"({"dev_matrix": [99999999999999999999999]})"),
       "dev_matrix: expected an integer, found 99999999999999999999999"},
      {"tensor_map nested too deep", JsonLayout(R"({"tensor_map": [[[0]]]})"),
       "parameter \"w\": tensor_map: expected an integer, found a list"},
      {"tensor_map nested without end",
       JsonLayout(R"({"tensor_map": )" + std::string(1'000'000, '[')),
       "tensor_map: expected an integer, found a list"},
      {"a size below zero", layout(R"("tensor_shape": [4, -4])"),
       "parameter \"w\": tensor_shape: expected an integer that is not negative, found -4"},
      {"field null", layout(R"("field": null)"), "field: expected an integer, found null"},
      {"opt_weight_shard_step of text", layout(R"("opt_weight_shard_step": "1")"),
       "opt_weight_shard_step: expected an integer, found \"1\""},
      {"opt_weight_shard_size a list", layout(R"("opt_weight_shard_size": [1])"),
       "opt_weight_shard_size: expected an integer, found a list"},
      {"more numbers than a layout has",
       layout(R"("param_split_shape": [1)" +
              [] {
                std::string more;
                for (int i = 0; i < 1 << 18; ++i) more += ",1";
                return more;
              }() +
              "]"),
       "parameter \"w\": expected a layout of at most 262144 numbers, found more"},
      {"a name to be escaped", R"({"parallel_layout_item": {"a\u001b[31m": 1}})",
       "parameter \"a\\x1b[31m\": expected an object"},
  };
  for (const Row& row : rows) ExpectRejected(row);
}

TEST(StrategyMalformedTest, SaysWhatAFileIsInstead) {
  const std::string advice =
      "; give the strategy that the training run saved beside its checkpoints";
  const std::string weights = "expected a strategy file, found a MindSpore checkpoint (weights)";
  const std::string ranks =
      BlockField(1, BlockField(1, "group") + BlockField(2, NumberField(1, 0) + NumberField(1, 1)));
  const std::string tensor(8, '\x3f');
  const Row rows[] = {
      {"nothing", "", "expected a strategy file, found an empty file" + advice},
      {"weights", TensorValue("w", "Float32", {2}, tensor), weights + advice},
      {"a scalar", TensorValue("step_num", "Int64", {}, tensor), weights},
      {"weights cut off", TensorValue("w", "Float32", {2}, tensor).substr(0, 10), weights},
      {"weights and a CRC", TensorValue("w", "Float32", {2}, tensor) + CrcTrailer(5), weights},
      {"weights of many GB", TensorValueHeader("w", "Float32", {1 << 30}, uint64_t{4} << 30),
       weights},
      {"a MapTensor", MapValue("m", {TensorMessage("int32", {2}, tensor)}), weights},
      {"encrypted weights", std::string("\xd8\x5e\x3a\x7f", 4) + "more",
       "found an encrypted MindSpore checkpoint (weights)"},
      {"weights under SM4", std::string("\xda\x5e\x3a\x7f", 4) + "more",
       "found an encrypted MindSpore checkpoint (weights)"},
      {"safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10),
       "found a safetensors file (weights)"},
      {"safetensors whose length looks like JSON",
       std::string("{\0\0\0\0\0\0\0{\"__metadata__\"", 23), "found a safetensors file (weights)"},
      {"group_info", ranks + BlockField(2, NumberField(1, 0)),
       "found a group_info file (groups of ranks)"},
      {"group_info of packed ranks", BlockField(1, BlockField(1, "g") + BlockField(2, "")),
       "found a group_info file (groups of ranks)"},
  };
  for (const Row& row : rows) ExpectRejected(row);
}

TEST(StrategyMalformedTest, TooManyLayouts) {
  const std::string item = LayoutItemField("", MakeLayout({}, {{}}));
  std::string protobuf;
  std::string json = R"({"parallel_layout_item": {"a": {"dev_matrix": [], "tensor_map": []})";
  for (size_t i = 0; i < kMaxStrategyLayouts; ++i) {
    protobuf += item;
    json += R"(,"b":{"dev_matrix":[],"tensor_map":[]})";
  }
  EXPECT_TRUE(ParseStrategy("s.ckpt", protobuf).ok());
  const Row rows[] = {
      {"protobuf", protobuf + item,
       "expected at most 1048576 layouts, found more at offset " + std::to_string(protobuf.size())},
      {"json", json + "}}", "parameter \"b\": expected at most 1048576 layouts, found more"},
  };
  for (const Row& row : rows) ExpectRejected(row);
}

TEST(StrategyMalformedTest, MergeRefusesTwoEncodings) {
  const auto merged = MergeStageFiles("folder", {{"a.ckpt", ProtobufStrategy(0, kLayouts), {}},
                                                 {"b.json", JsonStrategy(1, kLayouts), {}}});
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(merged.status().message(), HasSubstr("b.json is JSON and a.ckpt is not"));
}

}  // namespace
}  // namespace reshard::strategy_malformed_test
