#include "src/record/strict_json.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

namespace reshard::strict_json_test {
namespace {

using testing::Eq;
using testing::Optional;

// The examples of SPEC.md, and what a JSON string has its own escapes for.
TEST(ByteText, StandsForAnyBytes) {
  const struct {
    std::string bytes;
    const char* json;
  } rows[] = {
      {"", R"("")"},
      {"layer.weight", R"("layer.weight")"},
      {"a\\b", R"("a\\\\b")"},
      {"\\xe9", R"("\\\\xe9")"},
      {"caf\xc3\xa9", "\"caf\xc3\xa9\""},
      {"caf\xe9", R"("caf\\xe9")"},
      {"\xc3\xa9 \xff", R"("\\xc3\\xa9 \\xff")"},
      {"\xe9\\\n\"", R"("\\xe9\\\\\n\"")"},
      {std::string("\0", 1), R"("\u0000")"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(BytesAsJson(row.bytes), row.json);
    EXPECT_THAT(BytesOfText(nlohmann::json::parse(row.json).get<std::string>()),
                Optional(Eq(row.bytes)));
  }
}

TEST(ByteText, EachInOneWay) {
  for (const char* text : {"\\", "a\\", "\\n", "\\x", "\\xe", "\\xeg", "\\x-1", "\\xE9", "\\x41",
                           "\\xc3\\xa9", "\xc3\xa9\\xff", "\\xe9\\"}) {
    EXPECT_EQ(BytesOfText(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace reshard::strict_json_test
