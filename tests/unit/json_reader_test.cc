// What all readers of JSON have in common: places, what is passed over, and what is no JSON.

#include "src/base/json_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace reshard::json_reader_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Notes each value with its place, and passes over the values of "skip".
class Notes final : public JsonReader {
 public:
  Notes() : JsonReader("doc", StatusCode::kMismatch) {}

  std::vector<std::string> notes;

 private:
  Status OnValue(JsonValue& value) override {
    if (value.kind == JsonValue::Kind::kBoolean) return Error("found " + value.Shown());
    std::string place;
    for (size_t i = 1; i <= depth(); ++i) {
      place += LevelAt(i).is_list ? std::to_string(LevelAt(i).element) : Key(i);
      place += '/';
    }
    notes.push_back(place + value.Shown());
    return {};
  }
  Status OnOpen(bool /*is_list*/) override { return {}; }
  Status OnKey(const std::string& key) override {
    if (key == "skip") SkipValue();
    return {};
  }
};

TEST(JsonReaderTest, PlacesOfValues) {
  const std::string text = R"({"a": [1, {"b": -2, "skip": [[{"c": true}]], "d": "x"}, [[], 3.50]],)"
                           R"( "skip": true, "": null})";
  Notes whole;
  ASSERT_TRUE(whole.Read(text).ok());
  EXPECT_THAT(whole.notes, ElementsAre("a/0/1", "a/1/b/-2", "a/1/d/\"x\"", "a/2/1/3.50", "/null"));
  // In blocks of one byte.
  Notes bytes;
  size_t at = 0;
  ASSERT_TRUE(bytes
                  .Read(0,
                        [&]() -> Result<std::string_view> {
                          return std::string_view(text).substr(at++, 1);
                        })
                  .ok());
  EXPECT_EQ(bytes.notes, whole.notes);
}

TEST(JsonReaderTest, WhatEndsTheReading) {
  const struct {
    std::string text;
    StatusCode code;
    std::string message;
  } rows[] = {
      {"", StatusCode::kMismatch, "doc: expected JSON, found its end at byte 0; is the file cut"},
      {"[1", StatusCode::kMismatch, "doc: expected JSON, found its end at byte 2"},
      {"[1}", StatusCode::kMismatch, "doc: expected JSON, found an error at byte 3, near \"1}\""},
      {"[1] 2", StatusCode::kMismatch, "doc: expected JSON, found an error at byte 5"},
      {"[1e999]", StatusCode::kMismatch, "doc: expected JSON, found an error at byte"},
      {"[true, }", StatusCode::kMismatch, "doc: found true"},
      {std::string("[1]\0", 4), StatusCode::kCorrupt, "found a zero byte at byte 4"},
      {std::string("[true]\0", 7), StatusCode::kCorrupt, "found a zero byte at byte 7"},
      {std::string(100, '['), StatusCode::kMismatch, "doc: more than 64 nested"},
      {R"({"skip": )" + std::string(1'000'000, '['), StatusCode::kMismatch, "found its end"},
  };
  for (const auto& row : rows) {
    const Status status = Notes().Read(row.text);
    EXPECT_EQ(status.code(), row.code) << row.text.substr(0, 40);
    EXPECT_THAT(status.message(), HasSubstr(row.message));
  }
}

TEST(JsonReaderTest, ErrorsOfTheBytesGoFirst) {
  Notes notes;
  size_t blocks = 0;
  const Status status = notes.Read(0, [&]() -> Result<std::string_view> {
    if (blocks++ == 0) return std::string_view("[1, 2,");
    return IoError("no more");
  });
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(notes.notes, ElementsAre("0/1", "1/2"));
}

}  // namespace
}  // namespace reshard::json_reader_test
