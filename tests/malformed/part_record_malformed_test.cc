// Part records with one thing wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/record/part_record.h"
#include "tests/support/sealed_record.h"

namespace reshard::part_record_malformed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kDigestA(32, 'a');
const std::string kDigestB(32, 'b');

std::string Encoded(const PartRecordHead& head, const std::vector<RecordedValue>& values) {
  std::string bytes;
  PartRecordEncoder encoder([&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  EXPECT_TRUE(encoder.WriteHead(head).ok());
  for (const RecordedValue& value : values) EXPECT_TRUE(encoder.WriteValue(value).ok());
  EXPECT_TRUE(encoder.Finish().ok());
  return bytes;
}

PartRecordHead Head() {
  return {.plan = "8d1f",
          .path = "rank_0/a.ckpt",
          .size = kDigestBlockBytes + 1,
          .digest = kDigestA,
          .blocks = {kDigestA, kDigestB},
          .sources = {{"rank_0/s.ckpt", 7, kDigestA}, {"rank_1/s.ckpt", 8, kDigestB}}};
}

std::vector<RecordedValue> Values() {
  return {{.name = "w\"\n",
           .dtype = DType::kInt16,
           .full_shape = {4, 3},
           .box = {{1, 0}, {2, 3}},
           .offset = 40,
           .length = 12,
           .digest = kDigestA},
          {.name = "b", .offset = 60, .length = 4, .digest = kDigestB}};
}

std::string Whole() { return Encoded(Head(), Values()); }

Status FeedAll(PartRecordParser parser, const std::string& bytes) {
  const Status fed = parser.Feed(bytes);
  return fed.ok() ? parser.Finish() : fed;
}

Status ParseAll(const std::string& bytes) {
  return FeedAll(PartRecordParser("r.jsonl", [](const RecordedValue& /*value*/) {}), bytes);
}

// Without the Values, for which nobody asks.
Status ParseHead(const std::string& bytes) { return FeedAll(PartRecordParser("r.jsonl"), bytes); }

std::string With(const std::string& piece, const std::string& replacement) {
  return Resealed(Whole(), piece, replacement);
}

TEST(PartRecord, CastsComeBack) {
  PartRecordHead head = Head();
  head.lost = {{"a\xff", 1}, {"w", 3}};
  std::vector<RecordedValue> values = Values();
  values[1].cast_from = DType::kBFloat16;
  std::vector<RecordedValue> found;
  PartRecordParser parser("r.jsonl", [&](const RecordedValue& value) { found.push_back(value); });
  ASSERT_TRUE(parser.Feed(Encoded(head, values)).ok());
  ASSERT_TRUE(parser.Finish().ok());
  EXPECT_EQ(*parser.head(), head);
  EXPECT_EQ(found, values);
}

TEST(PartRecordMalformed, IsRefused) {
  const std::string whole = Whole();
  const std::string lines = whole.substr(0, whole.rfind("{\"digest\""));
  const std::string name = "\"name\":\"b\"";
  const struct {
    const char* name;
    std::string bytes;
    const char* message;
  } rows[] = {
      {"empty", "", "line 1: cut off at byte 0"},
      {"only a seal", Sealed("", 0), "line 1: byte 9: expected the member \"schema_version\""},
      {"no seal", lines, "line 4: cut off at byte"},
      {"no values, but they are counted", Sealed(lines.substr(0, lines.find('\n') + 1), 1),
       "line 2: damaged: for the lines before it expected {\"digest\":"},
      {"wrong count", Sealed(lines, 3), "line 4: damaged"},
      {"seal of other lines", Sealed(lines, 2).replace(lines.size() + 11, 4, "zzzz"),
       "line 4: damaged"},
      {"rubbish behind", whole + "x", "line 5: expected the end of the file"},
      {"a line behind", whole + "\n", "line 5: expected the end of the file"},
      {"a line twice", Sealed(lines + lines.substr(lines.find("{\"name\":\"b\"")), 3),
       "line 4: parameter \"b\": its content begins at byte 60, but the Value before it ends at "
       "byte 64"},
      {"an empty line", With("\n{", "\n\n{"), "line 2: no JSON at byte 1"},
      {"plan no digits", With("8d1f", "x"), "line 1: byte 30: \"plan\": expected 1 to 64"},
      {"path outside", With("rank_0/a.ckpt", "../a"), "it has the component \"..\""},
      {"size of more blocks", With("67108865", "134217729"),
       "2 digests of blocks, but a file of 134217729 bytes with a digest has 3"},
      {"largest size", With("67108865", "18446744073709551615"), "has 274877906944"},
      {"no digest, but blocks", With("\"digest\":\"" + kDigestA, "\"digest\":null,\"x\":\""),
       "expected the member \"block_bytes\", found \"x\""},
      {"blocks without a digest",
       With("\"digest\":\"" + kDigestA + "\",\"block", "\"digest\":null,\"block"),
       "2 digests of blocks, but a file of 67108865 bytes without a digest has 0"},
      {"other blocks", With("\"block_bytes\":67108864", "\"block_bytes\":1"),
       "\"block_bytes\": expected 67108864, found 1"},
      {"block null", With("[\"" + kDigestA + "\"", "[null"),
       "\"blocks\"[0]: expected a string, found null"},
      {"block short", With("[\"a", "[\""), "\"blocks\"[0]: expected 32 lower-case"},
      {"sources unsorted", With("rank_0/s", "rank_2/s"), "\"sources\"[1]: \"path\": path"},
      {"source without a digest",
       With("\"size\":7,\"digest\":\"" + kDigestA + "\"", "\"size\":7,\"digest\":null"),
       "source \"rank_0/s.ckpt\": it has no digest"},
      {"value without a digest",
       With("\"length\":12,\"digest\":\"" + kDigestA + "\"", "\"length\":12,\"digest\":null"),
       "line 2: parameter \"w\\\"\\n\": it has no digest"},
      {"no bytes", With(name, R"("name":"a\\xf")"), "stands for no bytes"},
      {"no UTF-8", With(name, "\"name\":\"\xff\""), "line 3: no JSON at byte 10"},
      {"member missing", With(name + ",", ""), "line 3: byte 8: expected the member \"name\""},
      {"member unknown", With("\"offset\":60", "\"x\":0,\"offset\":60"), "found \"x\""},
      {"two objects in a line", With("}\n{\"name\":\"b\"", "}{\"name\":\"b\""),
       "line 2: no JSON at byte"},
      {"dtype", With("\"Int16\"", "\"int16\""), "\"dtype\": \"int16\" is not a dtype"},
      {"dim negative", With("[4,3]", "[4,-3]"),
       "\"full_shape\"[1]: expected an unsigned integer below 2^64, found -3"},
      {"dim of 2^63", With("[4,3]", "[4,9223372036854775808]"),
       "\"full_shape\"[1]: 9223372036854775808 is no size of a dim"},
      {"dims of another number", With("[4,3]", "[4]"),
       "a box of 2 begins and 2 extents in a tensor of 1 dims"},
      {"box beyond", With("\"extent\":[2,3]", "\"extent\":[4,3]"),
       "the box [1:5, 0:3] is not within the full shape [4, 3]"},
      {"box far beyond", With("\"begin\":[1,0]", "\"begin\":[9223372036854775807,0]"),
       "the box [9223372036854775807:beyond 2^63, 0:3] is not within the full shape"},
      {"begin without extent", With("\"extent\":[2,3]", "\"extent\":[2]"), "1 extents"},
      {"65 dims",
       [] {
         std::string dims = "1";
         for (int d = 1; d < 65; ++d) dims += ",1";
         return With("[4,3]", "[" + dims + "]");
       }(),
       "\"full_shape\"[64]: more than 64 dims"},
      {"content before the last", With("\"offset\":60", "\"offset\":51"),
       "its content begins at byte 51, but the Value before it ends at byte 52"},
      {"content beyond the end", With("\"length\":4", "\"length\":67108806"),
       "its content has 67108806 bytes at byte 60, but the file has 67108865"},
      {"content that wraps", With("\"length\":4", "\"length\":18446744073709551615"),
       "its content has 18446744073709551615 bytes at byte 60"},
      {"cast from no dtype", With(kDigestB + "\"}\n", kDigestB + "\",\"cast_from\":\"float\"}\n"),
       "\"cast_from\": \"float\" is not a dtype"},
      {"cast from nothing", With(kDigestB + "\"}\n", kDigestB + "\",\"cast_from\":null}\n"),
       "\"cast_from\": expected a string, found null"},
      {"lost nothing", With("\"}]}", R"("}],"lost":[{"name":"a","values":0}]})"),
       "parameter \"a\" lost no values"},
      {"lost unsorted",
       With("\"}]}", R"("}],"lost":[{"name":"b","values":1},{"name":"a","values":1}]})"),
       "values lost of \"a\" after \"b\""},
      {"lost twice", With("\"}]}", R"("}],"lost":[],"lost":[]})"), "unknown member \"lost\""},
      {"lost too early", With("\"sources\"", R"("lost":[],"sources")"),
       "expected the member \"sources\", found \"lost\""},
      {"offset beyond", With("\"offset\":60", "\"offset\":18446744073709551615"),
       "at byte 18446744073709551615"},
  };
  for (const auto& row : rows) {
    const Status status = ParseAll(row.bytes);
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << row.name;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(row.message), HasSubstr("r.jsonl: line ")))
        << row.name;
    EXPECT_LT(status.message().size(), 2000U) << row.name;
  }
}

TEST(PartRecordMalformed, AnotherSchemaIsUnsupported) {
  const Status status = ParseAll("{\"schema_version\":3,\"parts\":[]}\n");
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("3, but this reshard knows 2"));
}

TEST(PartRecordMalformed, EveryFlippedBitIsNoticed) {
  const std::string whole = Whole();
  ASSERT_TRUE(ParseAll(whole).ok());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      EXPECT_FALSE(ParseAll(bytes).ok()) << "byte " << i << ", bit " << bit;
      EXPECT_FALSE(ParseHead(bytes).ok()) << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(PartRecordMalformed, EveryTruncationIsNoticed) {
  const std::string whole = Whole();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(ParseAll(whole.substr(0, size)).code(), StatusCode::kCorrupt) << size;
    EXPECT_EQ(ParseHead(whole.substr(0, size)).code(), StatusCode::kCorrupt) << size;
  }
}

TEST(PartRecordMalformed, ValuesThatNobodyAsksForAreNotParsed) {
  const std::string other = With("\"Int16\"", "\"int16\"");
  EXPECT_FALSE(ParseAll(other).ok());
  EXPECT_TRUE(ParseHead(other).ok());
}

TEST(PartRecordMalformed, ALineHasALimit) {
  const std::string piece(size_t{1} << 20, ' ');
  PartRecordParser parser("r.jsonl");
  Status status;
  uint64_t fed = 0;
  while (status.ok() && fed <= kMaxRecordLineBytes) {
    status = parser.Feed(piece);
    fed += piece.size();
  }
  EXPECT_EQ(status.code(), StatusCode::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("line 1: longer than 67108864 bytes"));
}

TEST(PartRecordMalformed, IsNotEncoded) {
  const auto head_with = [](auto change) {
    PartRecordHead head = Head();
    change(head);
    return head;
  };
  const struct {
    const char* name;
    PartRecordHead head;
    const char* message;
  } heads[] = {
      {"no plan", head_with([](PartRecordHead& h) { h.plan = ""; }), "1 to 64 lower-case"},
      {"path outside", head_with([](PartRecordHead& h) { h.path = "../a"; }), "component \"..\""},
      {"a block missing", head_with([](PartRecordHead& h) { h.blocks.pop_back(); }),
       "1 digests of blocks"},
      {"block no digest", head_with([](PartRecordHead& h) { h.blocks[0] = "x"; }), "found \"x\""},
      {"digest short", head_with([](PartRecordHead& h) { h.digest = "x"; }), "found \"x\""},
      {"sources unsorted", head_with([](PartRecordHead& h) { h.sources[0].path = "z"; }),
       "sorted and occur once"},
  };
  for (const auto& row : heads) {
    PartRecordEncoder encoder([](std::string_view) { return Status(); });
    const Status status = encoder.WriteHead(row.head);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.name;
  }
  const auto value_with = [](auto change) {
    RecordedValue value = Values()[0];
    change(value);
    return value;
  };
  const struct {
    const char* name;
    RecordedValue value;
    const char* message;
  } values[] = {
      {"no digest", value_with([](RecordedValue& v) { v.digest = ""; }), "it has no digest"},
      {"digest short", value_with([](RecordedValue& v) { v.digest = "x"; }), "found \"x\""},
      {"beyond the end", value_with([](RecordedValue& v) { v.offset = kDigestBlockBytes; }),
       "but the file has"},
      {"box beyond", value_with([](RecordedValue& v) { v.box.begin[0] = 3; }), "not within"},
  };
  for (const auto& row : values) {
    PartRecordEncoder encoder([](std::string_view) { return Status(); });
    ASSERT_TRUE(encoder.WriteHead(Head()).ok());
    const Status status = encoder.WriteValue(row.value);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.name;
  }
}

TEST(PartRecordEncoder, PassesTheSinksErrorOn) {
  PartRecordEncoder encoder([](std::string_view) { return IoError("no space"); });
  EXPECT_EQ(encoder.WriteHead(Head()).message(), "no space");
}

}  // namespace
}  // namespace reshard::part_record_malformed_test
