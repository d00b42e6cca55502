// Block records with one thing wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/record/block_record.h"
#include "tests/support/sealed_record.h"

namespace reshard::block_record_malformed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kDigestA(32, 'a');
const std::string kDigestB(32, 'b');

// The second and last part of a file of three blocks.
BlockRecord Record() {
  return {.plan = "8d1f",
          .path = "rank_0/a.ckpt",
          .size = 2 * kDigestBlockBytes + 1,
          .part = {kDigestBlockBytes, kDigestBlockBytes + 1},
          .blocks = {kDigestA, kDigestB},
          .sources = {{"rank_0/s.ckpt", 7}, {"rank_1/s.ckpt", 8}},
          .values = {{.value = {.name = "w",
                                .dtype = DType::kInt16,
                                .full_shape = {4, 3},
                                .box = {{1, 0}, {2, 3}},
                                .offset = kDigestBlockBytes - 8,
                                .length = 12,
                                .digest = kDigestA},
                      .taken = {{0, kDigestA}, {1, kDigestB}}},
                     {.value = {.name = "b",
                                .offset = kDigestBlockBytes + 10,
                                .length = 4,
                                .digest = kDigestB},
                      .taken = {{1, kDigestB}}}}};
}

std::string Whole() {
  const auto bytes = EncodeBlockRecord(Record());
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *bytes;
}

std::string With(const std::string& piece, const std::string& replacement) {
  return Resealed(Whole(), piece, replacement);
}

TEST(BlockRecord, CastsComeBack) {
  BlockRecord record = Record();
  record.values[0].value.cast_from = DType::kFloat32;
  record.values[0].lost = 7;
  const auto bytes = EncodeBlockRecord(record);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto parsed = ParseBlockRecord(*bytes, "r.jsonl");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, record);
}

TEST(BlockRecordMalformed, IsRefused) {
  const std::string whole = Whole();
  const std::string lines = whole.substr(0, whole.rfind("{\"digest\""));
  const std::string taken = "{\"source\":0,\"digest\":\"" + kDigestA + "\"}";
  const struct {
    const char* name;
    std::string bytes;
    const char* message;
  } rows[] = {
      {"empty", "", "line 1: cut off at byte 0"},
      {"only a seal", Sealed("", 0), "line 1: byte 9: expected the member \"schema_version\""},
      {"no seal", lines, "line 4: cut off at byte"},
      {"wrong count", Sealed(lines, 1), "line 4: damaged"},
      {"rubbish behind", whole + "x", "line 5: expected the end of the file"},
      {"an empty line", With("\n{", "\n\n{"), "line 2: no JSON at byte 1"},
      {"plan no digits", With("8d1f", "x"), "\"plan\": expected 1 to 64"},
      {"path outside", With("rank_0/a.ckpt", "../a"), "it has the component \"..\""},
      {"path of a manifest", With("rank_0/a.ckpt", "manifest.json"), "is a manifest's name"},
      {"no bytes", With("\"length\":67108865}", "\"length\":0}"),
       "a part of 0 bytes at byte 67108864"},
      {"part beyond the end", With("\"length\":67108865}", "\"length\":67108866}"),
       "a part of 67108866 bytes at byte 67108864 of a file of 134217729"},
      {"part that wraps", With("\"length\":67108865}", "\"length\":18446744073709551615}"),
       "a part of 18446744073709551615 bytes"},
      {"part from far away",
       With("\"part\":{\"offset\":67108864", "\"part\":{\"offset\":18446744073709551615"),
       "at byte 18446744073709551615 of a file"},
      {"part that begins inside a block",
       With("\"part\":{\"offset\":67108864,\"length\":67108865",
            "\"part\":{\"offset\":67108865,\"length\":67108864"),
       "but parts are whole blocks"},
      {"part that ends inside a block", With("\"length\":67108865}", "\"length\":5}"),
       "but parts are whole blocks"},
      {"other blocks", With("\"block_bytes\":67108864", "\"block_bytes\":1"),
       "\"block_bytes\": expected 67108864, found 1"},
      {"a block missing", With(",\"" + kDigestB + "\"]", "]"),
       "1 digests of blocks, but a part of 67108865 bytes has 2"},
      {"no blocks, but digests", With("[\"" + kDigestA + "\",\"" + kDigestB + "\"]", "[]"),
       "line 2: parameter \"w\": it has a digest"},
      {"sources unsorted", With("rank_0/s", "rank_2/s"), "\"sources\"[1]: \"path\": path"},
      {"a source's digest", With("\"size\":7}", "\"size\":7,\"digest\":null}"),
       "unknown member \"digest\""},
      {"no value", With("{\"value\":", "{\"x\":"), "expected the member \"value\", found \"x\""},
      {"value without a digest",
       With("\"length\":12,\"digest\":\"" + kDigestA + "\"", "\"length\":12,\"digest\":null"),
       "line 2: parameter \"w\": it has no digest"},
      {"value behind the part", With("\"offset\":67108874", "\"offset\":18446744073709551615"),
       "at byte 18446744073709551615"},
      {"value before the part",
       With("\"offset\":67108856,\"length\":12", "\"offset\":1,\"length\":2"),
       "line 2: parameter \"w\": its content has 2 bytes at byte 1, outside the part"},
      {"value before the last", With("\"offset\":67108874", "\"offset\":67108867"),
       "its content begins at byte 67108867, but the Value before it ends at byte 67108868"},
      {"box beyond", With("\"extent\":[2,3]", "\"extent\":[4,3]"), "is not within the full shape"},
      {"source that is not listed", With("{\"source\":1", "{\"source\":2"),
       "line 2: parameter \"w\": taken from source number 2 of 2"},
      {"source twice", With("{\"source\":1", "{\"source\":0"), "source number 0 after 0"},
      {"taken without a digest", With(taken, "{\"source\":0,\"digest\":null}"),
       "source number 0: no digest, but the part has some"},
      {"taken short", With(taken, "{\"source\":0,\"digest\":\"a\"}"), "expected 32 lower-case"},
  };
  for (const auto& row : rows) {
    const Status status = ParseBlockRecord(row.bytes, "r.jsonl").status();
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << row.name;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(row.message), HasSubstr("r.jsonl: line ")))
        << row.name;
  }
}

TEST(BlockRecordMalformed, AnotherSchemaIsUnsupported) {
  EXPECT_EQ(ParseBlockRecord("{\"schema_version\":3}\n", "r").status().code(),
            StatusCode::kUnsupported);
}

TEST(BlockRecordMalformed, EveryFlippedBitAndTruncationIsNoticed) {
  const std::string whole = Whole();
  ASSERT_TRUE(ParseBlockRecord(whole, "r").ok());
  EXPECT_EQ(*ParseBlockRecord(whole, "r"), Record());
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(ParseBlockRecord(whole.substr(0, i), "r").status().code(), StatusCode::kCorrupt) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      EXPECT_FALSE(ParseBlockRecord(bytes, "r").ok()) << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(BlockRecordMalformed, IsNotEncoded) {
  const struct {
    const char* name;
    void (*change)(BlockRecord& record);
    const char* message;
  } rows[] = {
      {"no plan", [](BlockRecord& r) { r.plan = ""; }, "1 to 64 lower-case"},
      {"path outside", [](BlockRecord& r) { r.path = "../a"; }, "component \"..\""},
      {"no bytes", [](BlockRecord& r) { r.part.length = 0; }, "a part of 0 bytes"},
      {"a block missing", [](BlockRecord& r) { r.blocks.pop_back(); }, "1 digests of blocks"},
      {"block no digest", [](BlockRecord& r) { r.blocks[0] = "x"; }, "found \"x\""},
      {"sources unsorted", [](BlockRecord& r) { r.sources[0].path = "z"; },
       "sorted and occur once"},
      {"values unsorted", [](BlockRecord& r) { std::swap(r.values[0], r.values[1]); },
       "its content begins at byte"},
      {"digest short", [](BlockRecord& r) { r.values[0].value.digest = "x"; }, "found \"x\""},
      {"taken no digest", [](BlockRecord& r) { r.values[0].taken[0].digest = ""; }, "no digest"},
      {"taken short", [](BlockRecord& r) { r.values[0].taken[0].digest = "x"; }, "found \"x\""},
  };
  for (const auto& row : rows) {
    BlockRecord record = Record();
    row.change(record);
    const Status status = EncodeBlockRecord(record).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << row.name;
    EXPECT_THAT(status.message(), HasSubstr(row.message)) << row.name;
  }
}

}  // namespace
}  // namespace reshard::block_record_malformed_test
