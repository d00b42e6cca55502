#include "src/base/json_string.h"

#include <gtest/gtest.h>

#include <string>

namespace reshard::json_string_test {
namespace {

TEST(JsonStringTest, EscapesWhatJsonRequires) {
  EXPECT_EQ(JsonString("layers.0.weight"), R"("layers.0.weight")");
  EXPECT_EQ(JsonString(""), R"("")");
  EXPECT_EQ(JsonString("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(JsonString("é\x7f"), "\"é\x7f\"");
}

TEST(JsonStringTest, AsciiHasNoOtherBytes) {
  // What Python's json.dumps("é\x7f😀/") prints.
  EXPECT_EQ(AsciiJsonString("é\x7f😀/"), R"("\u00e9\u007f\ud83d\ude00/")");
}

TEST(JsonStringTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(JsonString("a\xff"), "\"a\uFFFD\"");
}

TEST(JsonStringTest, TellsUtf8) {
  for (const char* text : {"", "plain", "tab\t\"", "é", "😀", "\x7f"}) EXPECT_TRUE(IsUtf8(text));
  // A lone lead, a lone continuation, an overlong form, a surrogate, beyond U+10FFFF.
  for (const char* text : {"\xc3", "\xa9", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(text)) << testing::PrintToString(std::string(text));
  }
  EXPECT_TRUE(IsUtf8(std::string_view("\0", 1)));
}

TEST(JsonStringTest, PlainTextNeedsNoEscapes) {
  EXPECT_TRUE(IsPlainJson("layers.0 ~"));
  for (const char* text : {"\"", "\\", "\n", "\x7f", "é"}) EXPECT_FALSE(IsPlainJson(text));
}

}  // namespace
}  // namespace reshard::json_string_test
