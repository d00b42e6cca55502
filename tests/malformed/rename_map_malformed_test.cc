// Rename maps with one thing wrong in each row.

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "reshard/convert.h"
#include "tests/support/temporary_folder.h"

namespace reshard::rename_map_malformed_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(RenameMapTest, Reads) {
  const TemporaryFolder folder(MemoryFolder());
  const std::string path =
      folder.Write("map.json", R"( {"a.b": "x", "caf\u00e9": "\ud83d\ude00", "back\\slash": "a.b",
          "*": "star", "patterns": "a name like others"} )");
  const auto renames = ReadRenames(path);
  ASSERT_TRUE(renames.ok()) << renames.status().message();
  EXPECT_EQ(*renames, (Renames{{{"a.b", "x"},
                                {"caf\u00e9", "\U0001f600"},
                                {"back\\slash", "a.b"},
                                {"*", "star"},
                                {"patterns", "a name like others"}},
                               {}}));
  const auto none = ReadRenames(folder.Write("none.json", "{}"));
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_TRUE(none->empty());
}

TEST(RenameMapTest, ReadsPatterns) {
  const TemporaryFolder folder(MemoryFolder());
  const auto renames = ReadRenames(folder.Write(
      "map.json", R"({"patterns": {"a.*": "x.*", "b.*": "x.*", "*.*": "*/*"}, "a.b": "c"})"));
  ASSERT_TRUE(renames.ok()) << renames.status().message();
  EXPECT_EQ(*renames, (Renames{{{"a.b", "c"}}, {{"a.*", "x.*"}, {"b.*", "x.*"}, {"*.*", "*/*"}}}));
}

TEST(RenameMapTest, RefusesEverythingElse) {
  const TemporaryFolder folder(MemoryFolder());
  const struct {
    std::string bytes;
    StatusCode code;
    std::string message;
  } rows[] = {
      {"", StatusCode::kInvalidArgument, "expected JSON, found its end at byte 0"},
      {"{\"a\": \"b\"", StatusCode::kInvalidArgument, "expected JSON, found its end at byte 9"},
      {"{\"a\": \"b\"} x", StatusCode::kInvalidArgument,
       "expected JSON, found an error at byte 12"},
      {"{\"a\": \"\xff\"}", StatusCode::kInvalidArgument, "expected JSON, found an error at byte"},
      {std::string("{\"a\": \"b\"}\0{\"c\": \"d\"}", 21), StatusCode::kCorrupt,
       "expected JSON, found a zero byte at byte 11"},
      {"[\"a\"]", StatusCode::kInvalidArgument, "expected an object"},
      {"\"a\"", StatusCode::kInvalidArgument, "expected an object"},
      {"7", StatusCode::kInvalidArgument, "\"new name\", ...}, found a number"},
      {R"({"a": 1})", StatusCode::kInvalidArgument,
       "the new name of \"a\": expected a string, found a number"},
      {R"({"a": -1.5})", StatusCode::kInvalidArgument, "expected a string, found a number"},
      {R"({"a": null})", StatusCode::kInvalidArgument, "expected a string, found null"},
      {R"({"a": true})", StatusCode::kInvalidArgument, "expected a string, found a boolean"},
      {R"({"a": ["b"]})", StatusCode::kInvalidArgument, "expected a string, found an array"},
      {R"({"a": {"b": "c"}})", StatusCode::kInvalidArgument, "expected a string, found an object"},
      {R"({"a\n": "b", "a\u000a": "b"})", StatusCode::kInvalidArgument,
       "the name \"a\\n\" occurs twice"},
      {std::string(100'000, '['), StatusCode::kInvalidArgument, "expected an object"},
      {R"({"patterns": {"a": "b"}})", StatusCode::kInvalidArgument,
       "renaming by the pattern \"a\" to \"b\": expected one * or more"},
      {R"({"patterns": {"a.*": "b.*.*"}})", StatusCode::kInvalidArgument, "found 1 and 2"},
      {R"({"patterns": {"*": ""}})", StatusCode::kInvalidArgument, "renaming \"*\" to \"\""},
      {R"({"patterns": {"a.*": {"b": "c"}}})", StatusCode::kInvalidArgument,
       "the new name of \"a.*\": expected a string, found an object"},
      {R"({"patterns": {"a*": "b*", "a*": "c*"}})", StatusCode::kInvalidArgument,
       "the name \"a*\" occurs twice"},
      {R"({"patterns": "a", "patterns": {}})", StatusCode::kInvalidArgument,
       "the name \"patterns\" occurs twice"},
      {R"({"patterns": {}, "patterns": {}})", StatusCode::kInvalidArgument,
       "the name \"patterns\" occurs twice"},
      {R"({"a": ""})", StatusCode::kInvalidArgument, "renaming \"a\" to \"\""},
      {R"({"": "a"})", StatusCode::kInvalidArgument, "renaming \"\" to \"a\""},
      {R"({"a": "c", "b": "c"})", StatusCode::kInvalidArgument,
       "the parameters \"a\" and \"b\" the same name \"c\""},
      {R"({"a": ")" + std::string(65537, 'x') + "\"}", StatusCode::kInvalidArgument,
       "at most 65536 bytes, found 65537"},
  };
  for (const auto& row : rows) {
    const std::string path = folder.Write("map.json", row.bytes);
    const auto renames = ReadRenames(path);
    EXPECT_EQ(renames.status().code(), row.code) << row.bytes.substr(0, 40);
    EXPECT_THAT(renames.status().message(), StartsWith(path + ": "));
    EXPECT_THAT(renames.status().message(), HasSubstr(row.message));
  }
  EXPECT_EQ(ReadRenames(folder.path() / "gone.json").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadRenames(folder.path()).status().code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace reshard::rename_map_malformed_test
