#include "format/mindspore_checkpoint/value_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/checkpoint_bytes.h"
#include "tests/support/parse_values.h"

namespace reshard::value_parser_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Parses with windows of just what the parser asks for.
Result<std::vector<ParsedValue>> Parse(std::string_view bytes,
                                       std::vector<ByteRange>* windows = nullptr) {
  return ParseValues(
      bytes, [] { return uint64_t{0}; }, windows);
}

std::string Value(std::string_view fields) { return BlockField(1, fields); }

TEST(ValueParserTest, ReadsTensorAsMindSporeWritesIt) {
  const std::string first = TensorValue("w", "Float32", {2, 3}, std::string(24, 'x'));
  const std::string second = TensorValue("step", "Int64", {}, std::string(8, 'y'));
  const auto values = Parse(first + second);
  ASSERT_TRUE(values.ok()) << values.status().message();
  ASSERT_EQ(values->size(), 2U);
  const ParsedValue& w = (*values)[0];
  EXPECT_EQ(w.tag, "w");
  EXPECT_FALSE(w.is_map_tensor);
  EXPECT_EQ(w.message, (ByteRange{0, first.size()}));
  ASSERT_EQ(w.tensors.size(), 1U);
  EXPECT_EQ(w.tensors[0].type, "Float32");
  EXPECT_THAT(w.tensors[0].dims, ElementsAre(2, 3));
  EXPECT_EQ(w.tensors[0].content, (ByteRange{first.size() - 24, 24}));
  const ParsedValue& step = (*values)[1];
  EXPECT_EQ(step.message, (ByteRange{first.size(), second.size()}));
  EXPECT_TRUE(step.tensors[0].dims.empty());
}

TEST(ValueParserTest, ReadsMapTensor) {
  const auto values = Parse(MapValue(
      "m", {TensorMessage("int32", {2}, "kkkkkkkk"), TensorMessage("float32", {2, 1}, "vvvvvvvv"),
            TensorMessage("int8", {2}, "ss")}));
  ASSERT_TRUE(values.ok()) << values.status().message();
  ASSERT_EQ((*values)[0].tensors.size(), 3U);
  EXPECT_TRUE((*values)[0].is_map_tensor);
  EXPECT_EQ((*values)[0].tensors[1].type, "float32");
  EXPECT_EQ((*values)[0].tensors[2].content.length, 2U);
}

TEST(ValueParserTest, FieldsMayComeInAnyOrderAndAgain) {
  const std::string tensor = BlockField(3, "old") + BlockField(2, "Int8") + NumberField(1, 4) +
                             NumberField(9, 1) + BlockField(3, "late") + BlockField(2, "UInt8");
  const std::string bytes = Value(BlockField(2, tensor) + BlockField(1, "first") +
                                  BlockField(15, "unknown") + BlockField(1, "last"));
  const auto values = Parse(bytes);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ((*values)[0].tag, "last");
  EXPECT_EQ((*values)[0].tensors[0].type, "UInt8");
  EXPECT_THAT((*values)[0].tensors[0].dims, ElementsAre(4));
  EXPECT_EQ(bytes.substr((*values)[0].tensors[0].content.offset, 4), "late");
}

TEST(ValueParserTest, MergesMessagesAndSwitchesTheOneof) {
  const std::string whole = TensorMessage("Int8", {1}, "a");
  const std::string map = BlockField(1, whole) + BlockField(1, whole) + BlockField(1, whole);
  // The halves of a tensor add up; the dims of what the map replaced are gone.
  const auto values =
      Parse(Value(BlockField(1, "w") + BlockField(2, NumberField(1, 7)) + BlockField(3, map) +
                  BlockField(2, NumberField(1, 2)) + BlockField(2, whole)));
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_FALSE((*values)[0].is_map_tensor);
  EXPECT_THAT((*values)[0].tensors[0].dims, ElementsAre(2, 1));
}

TEST(ValueParserTest, DimsMayBePacked) {
  const std::string tensor = BlockField(1, Varint(2) + Varint(300)) + NumberField(1, 5) +
                             BlockField(1, "") + BlockField(2, "Int8") + BlockField(3, "");
  const auto values = Parse(Value(BlockField(1, "w") + BlockField(2, tensor)));
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_THAT((*values)[0].tensors[0].dims, ElementsAre(2, 300, 5));
}

// The windows asked for are header bytes alone, whatever the size of the content: nothing but the
// bytes given here exists.
TEST(ValueParserTest, HopsOverContentOfAnyLength) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  for (const uint64_t content : {2 * kGiB, 4 * kGiB + 5, 6 * kGiB, kGiB << 20}) {
    SCOPED_TRACE(content);
    const std::string header =
        TensorValueHeader("big", "Int8", {static_cast<int64_t>(content)}, content);
    const std::string last = TensorValue("small", "Int8", {1}, "s");
    const uint64_t second = header.size() + content;
    ValueParser parser(second + last.size());
    std::string bytes = header;
    uint64_t offset = 0;
    const auto next = [&] {
      return parser.Advance(offset, std::as_bytes(std::span<const char>(bytes)));
    };
    auto event = next();
    ASSERT_TRUE(event.ok()) << event.status().message();
    ASSERT_EQ(*event, ValueParser::Event::kValue);
    EXPECT_EQ(parser.value().tensors[0].content, (ByteRange{header.size(), content}));
    event = next();
    ASSERT_EQ(*event, ValueParser::Event::kNeedsBytes);
    EXPECT_EQ(parser.needed(), (ByteRange{second, 1}));
    bytes = last;
    offset = second;
    ASSERT_EQ(*next(), ValueParser::Event::kValue);
    EXPECT_EQ(parser.value().tag, "small");
    EXPECT_EQ(*next(), ValueParser::Event::kDone);
  }
}

// Values written as usual are read in one go where all of a header is at hand: the same comes of
// them, and of all others, whatever part of the file that is.
TEST(ValueParserTest, WindowsDoNotMatter) {
  const std::string tensor = TensorMessage("Int8", {3}, "abc");
  const std::vector<std::string> files = {
      TensorValue("w", "Float32", {2, 3}, std::string(24, 'x')) +
          TensorValue(std::string(300, 'n'), "Int64", {}, std::string(8, 'y')),
      TensorValue("", "Int8", {int64_t{1} << 62, 0}, ""),
      TensorValue("many", "Int8", std::vector<int64_t>(9, 1), "x"),
      TensorValue("negative", "Int8", {-1}, "x"),
      Value(BlockField(1, "w") + BlockField(2, tensor) + NumberField(9, 7)),
      Value(BlockField(2, tensor) + BlockField(1, "w")),
      Value(BlockField(1, "w") + BlockField(2, tensor) + BlockField(2, tensor)),
      Value(BlockField(1, "w") + BlockField(2, tensor + NumberField(9, 7))),
      Value(BlockField(1, "w") +
            BlockField(2, BlockField(2, "Int8") + BlockField(3, "abc") + NumberField(1, 3))),
      MapValue("m", {tensor, tensor, tensor})};
  const std::string last = TensorValue("last", "Int8", {1}, "z");
  for (size_t i = 0; i < files.size(); ++i) {
    SCOPED_TRACE(i);
    const std::string bytes = files[i] + last;
    const auto bit_by_bit = Parse(bytes);
    const auto at_once = ParseValues(bytes, [&] { return uint64_t{bytes.size()}; });
    ASSERT_TRUE(bit_by_bit.ok()) << bit_by_bit.status().message();
    ASSERT_TRUE(at_once.ok()) << at_once.status().message();
    ASSERT_EQ(at_once->size(), bit_by_bit->size());
    for (size_t v = 0; v < at_once->size(); ++v) {
      const ParsedValue& a = (*at_once)[v];
      const ParsedValue& b = (*bit_by_bit)[v];
      EXPECT_EQ(a.message, b.message);
      EXPECT_EQ(a.tag, b.tag);
      EXPECT_EQ(a.is_map_tensor, b.is_map_tensor);
      ASSERT_EQ(a.tensors.size(), b.tensors.size());
      for (size_t t = 0; t < a.tensors.size(); ++t) {
        EXPECT_EQ(a.tensors[t].dims, b.tensors[t].dims);
        EXPECT_EQ(a.tensors[t].type, b.tensors[t].type);
        EXPECT_EQ(a.tensors[t].content, b.tensors[t].content);
      }
    }
  }
}

TEST(ValueParserTest, AsksForNoContentByte) {
  const std::string content(100, 'c');
  const std::string map =
      MapValue("m", {TensorMessage("int32", {25}, content), TensorMessage("int32", {25}, content),
                     TensorMessage("int32", {25}, content)});
  const std::string bytes = TensorValue("w", "Float32", {25}, content) + map +
                            Value(BlockField(7, content) + BlockField(1, "late") +
                                  BlockField(2, TensorMessage("Int8", {100}, content)));
  std::vector<ByteRange> windows;
  ASSERT_TRUE(Parse(bytes, &windows).ok());
  for (const ByteRange& window : windows) {
    EXPECT_THAT(bytes.substr(window.offset, window.length), ::testing::Not(HasSubstr("c")))
        << window.offset;
  }
}

TEST(ValueParserTest, GroupsAreSkippedUpToLibprotobufsDepth) {
  const auto nested = [](size_t depth) {
    std::string bytes;
    for (size_t i = 0; i < depth; ++i) bytes += Key(9, 3) + NumberField(1, i);
    for (size_t i = 0; i < depth; ++i) bytes += Key(9, 4);
    return bytes;
  };
  const std::string value = TensorValue("w", "Int8", {1}, "x");
  const auto values = Parse(nested(100) + value);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(values->size(), 1U);
  EXPECT_FALSE(Parse(nested(101) + value).ok());
  EXPECT_TRUE(
      Parse(Value(nested(99) + BlockField(1, "w") + BlockField(2, TensorMessage("Int8", {1}, "x"))))
          .ok());
  EXPECT_FALSE(Parse(Value(nested(100) + BlockField(1, "w") +
                           BlockField(2, TensorMessage("Int8", {1}, "x"))))
                   .ok());
  // A MiB of group begins neither overflows a stack nor takes long.
  EXPECT_FALSE(Parse(std::string(1 << 20, Key(9, 3)[0])).ok());
}

TEST(ValueParserTest, LimitsAreTheStatedOnes) {
  const auto tagged = [](size_t bytes) {
    return Parse(TensorValue(std::string(bytes, 't'), "Int8", {1}, "x"));
  };
  EXPECT_TRUE(tagged(kMaxTagBytes).ok());
  EXPECT_THAT(tagged(kMaxTagBytes + 1).status().message(), HasSubstr("65537 bytes"));
  const auto dims = [](size_t count) {
    return Parse(TensorValue("w", "Int8", std::vector<int64_t>(count, 1), "x"));
  };
  EXPECT_TRUE(dims(kMaxDims).ok());
  EXPECT_EQ(dims(kMaxDims + 1).status().message(),
            "parameter \"w\" at offset 0: its tensor has 65 dims, but at most 64 are accepted");
  const auto typed = [](size_t bytes) {
    return Parse(TensorValue("w", std::string(bytes, 't'), {1}, "x"));
  };
  EXPECT_TRUE(typed(kMaxTypeBytes).ok());
  EXPECT_FALSE(typed(kMaxTypeBytes + 1).ok());
  // What another field replaces has no limit.
  EXPECT_TRUE(Parse(Value(BlockField(1, std::string(kMaxTagBytes + 1, 't')) + BlockField(1, "w") +
                          BlockField(2, TensorMessage("Int8", {1}, "x"))))
                  .ok());
}

TEST(ValueParserTest, NumbersMayBePadded) {
  const std::string tensor =
      Varint(8, 5) + Varint(1, 10) + BlockField(2, "Int8") + BlockField(3, "x");
  const std::string fields = BlockField(1, "w") + Varint(18, 3) + Varint(tensor.size(), 5) + tensor;
  const auto values = Parse(Value(fields));
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_THAT((*values)[0].tensors[0].dims, ElementsAre(1));
  // libprotobuf takes keys and lengths of at most 5 bytes; longer lengths are for longer contents.
  EXPECT_FALSE(Parse(Varint(10, 6) + Varint(fields.size()) + fields).ok());
  EXPECT_FALSE(Parse(Varint(10) + Varint(fields.size(), 6) + fields).ok());
}

}  // namespace
}  // namespace reshard::value_parser_test
