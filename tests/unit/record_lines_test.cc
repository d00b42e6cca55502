// Part records and block records with all members, each of its own unusual value: their bytes are
// written and read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/record/block_record.h"
#include "src/record/part_record.h"

namespace reshard::record_lines_test {
namespace {

using testing::ElementsAre;

std::string Hex(char digit) { return std::string(32, digit); }

// Without the last line.
std::string Lines(const std::string& record) { return record.substr(0, record.rfind("{\"digest")); }

RecordedValue Value() {
  return {.name = "w\"\n\\\xe9",
          .dtype = DType::kString,
          .full_shape = {INT64_MAX, 0, 7},
          .box = {{INT64_MAX - 1, 0, 3}, {1, 0, 4}},
          .offset = 8,
          .length = 92,
          .digest = Hex('c'),
          .cast_from = DType::kFloat8E5M2FNUZ};
}

const char kValue[] =
    R"({"name":"w\"\n\\\\\\xe9","dtype":"str","full_shape":[9223372036854775807,0,7],)"
    R"("box":{"begin":[9223372036854775806,0,3],"extent":[1,0,4]},"offset":8,"length":92,)"
    R"("digest":"cccccccccccccccccccccccccccccccc","cast_from":"Float8E5M2FNUZ"})";

TEST(RecordLines, APartRecordWithAllMembers) {
  const PartRecordHead head{
      .plan = "0f",
      .path = "\xff/\\",
      .size = 100,
      .digest = Hex('a'),
      .blocks = {Hex('b')},
      .sources = {{"\x01", UINT64_MAX, Hex('c')}, {"s", 0, Hex('a')}},
      .lost = {{"", 0, 1}, {"b", 2, 0}, {"c", UINT64_MAX, UINT64_MAX - 1}},
  };
  const RecordedValue scalar{.name = "", .offset = 100, .digest = Hex('b')};
  const std::string lines =
      R"({"schema_version":2,"plan":"0f","path":"\\xff/\\\\","size":100,)"
      R"("digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","block_bytes":67108864,)"
      R"("blocks":["bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],)"
      R"("sources":[{"path":"\u0001","size":18446744073709551615,)"
      R"("digest":"cccccccccccccccccccccccccccccccc"},)"
      R"({"path":"s","size":0,"digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}],)"
      R"("lost":[{"name":"","values":0,"zeros":1},{"name":"b","values":2},)"
      R"({"name":"c","values":18446744073709551615,"zeros":18446744073709551614}]})"
      "\n" +
      std::string(kValue) + "\n" +
      R"({"name":"","dtype":"Float32","full_shape":[],"box":{"begin":[],"extent":[]},)"
      R"("offset":100,"length":0,"digest":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"})"
      "\n";
  std::string bytes;
  PartRecordEncoder encoder([&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  ASSERT_TRUE(encoder.WriteHead(head).ok());
  ASSERT_TRUE(encoder.WriteValue(Value()).ok());
  ASSERT_TRUE(encoder.WriteValue(scalar).ok());
  ASSERT_TRUE(encoder.Finish().ok());
  EXPECT_EQ(Lines(bytes), lines);

  std::vector<RecordedValue> values;
  PartRecordParser parser("r.jsonl", [&](const RecordedValue& value) { values.push_back(value); });
  const Status fed = parser.Feed(bytes);
  ASSERT_TRUE(fed.ok()) << fed.message();
  ASSERT_TRUE(parser.Finish().ok());
  EXPECT_EQ(*parser.head(), head);
  EXPECT_THAT(values, ElementsAre(Value(), scalar));
}

TEST(RecordLines, APartRecordWithoutDigests) {
  std::string bytes;
  PartRecordEncoder encoder([&](std::string_view piece) {
    bytes += piece;
    return Status();
  });
  ASSERT_TRUE(encoder.WriteHead({.plan = "1", .path = "a", .size = 0}).ok());
  ASSERT_TRUE(encoder.WriteValue({.name = "b"}).ok());
  ASSERT_TRUE(encoder.Finish().ok());
  EXPECT_EQ(
      Lines(bytes),
      R"({"schema_version":2,"plan":"1","path":"a","size":0,"digest":null,"block_bytes":67108864,)"
      R"("blocks":[],"sources":[]})"
      "\n"
      R"({"name":"b","dtype":"Float32","full_shape":[],"box":{"begin":[],"extent":[]},)"
      R"("offset":0,"length":0,"digest":null})"
      "\n");
}

TEST(RecordLines, ABlockRecordWithAllMembers) {
  const BlockRecord record{
      .plan = "f0",
      .path = "\xff/\\",
      .size = 100,
      .part = {0, 100},
      .blocks = {Hex('a')},
      .sources = {{"\x01", UINT64_MAX}, {"s", 0}},
      .values = {{.value = Value(),
                  .taken = {{0, Hex('a')}, {1, Hex('b')}},
                  .lost = UINT64_MAX,
                  .zeros = 1},
                 {.value = {.name = "b", .offset = 100, .digest = Hex('b')}, .zeros = 3}},
  };
  const auto bytes = EncodeBlockRecord(record);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(Lines(*bytes),
            R"({"schema_version":2,"plan":"f0","path":"\\xff/\\\\","size":100,)"
            R"("part":{"offset":0,"length":100},"block_bytes":67108864,)"
            R"("blocks":["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],)"
            R"("sources":[{"path":"\u0001","size":18446744073709551615},{"path":"s","size":0}]})"
            "\n"
            R"({"value":)" +
                std::string(kValue) +
                R"(,"taken":[{"source":0,"digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},)"
                R"({"source":1,"digest":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}],)"
                R"("lost":18446744073709551615,"zeros":1})"
                "\n"
                R"({"value":{"name":"b","dtype":"Float32","full_shape":[],)"
                R"("box":{"begin":[],"extent":[]},"offset":100,"length":0,)"
                R"("digest":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},"taken":[],"zeros":3})"
                "\n");
  const auto back = ParseBlockRecord(*bytes, "r.jsonl");
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, record);
}

}  // namespace
}  // namespace reshard::record_lines_test
