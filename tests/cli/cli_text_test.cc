// What the command line prints: glob patterns, figures, tables, names made safe.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/glob_match.h"
#include "tools/cli/printable.h"
#include "tools/cli/text_format.h"

namespace reshard {
namespace {

TEST(GlobMatchTest, Matches) {
  const struct {
    const char* pattern;
    const char* name;
    bool matches;
  } rows[] = {
      {"", "", true},
      {"", "a", false},
      {"a", "", false},
      {"abc", "abc", true},
      {"abc", "abcd", false},
      {"*", "", true},
      {"*", "adam_m.x", true},
      {"adam_m.*", "adam_m.layer0.weight", true},
      {"adam_m.*", "adam_v.layer0.weight", false},
      {"*weight", "layer0.weight", true},
      {"*weight", "layer0.weight.scale", false},
      {"*.weight.*", "a.weight.b.weight.c", true},
      {"*ab*ab*", "xxabyyabzz", true},
      {"*ab*ab*", "xxabyybazz", false},
      {"**a", "bba", true},
      {"layer?.w", "layer0.w", true},
      {"layer?.w", "layer10.w", false},
      {"layer[0-3].w", "layer3.w", true},
      {"layer[0-3].w", "layer4.w", false},
      {"layer[!0-3].w", "layer4.w", true},
      {"layer[!0-3].w", "layer2.w", false},
      {"[abc]", "b", true},
      {"[abc]", "d", false},
      {"[]a]", "]", true},
      {"[!]a]", "]", false},
      {"[!]a]", "b", true},
      {"[a-]", "-", true},
      {"[a-]", "b", false},
      {"[z-a]", "m", false},
      {"[ab", "[ab", true},
      {"[", "[", true},
      {"[!", "[!", true},
      {"*[0-9]", "layer7", true},
      {"a\\*b", "a*b", true},
      {"a\\*b", "axb", false},
      {"a\\", "a\\", true},
      {"[\xc3-\xc4]", "\xc4", true},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(GlobMatch(row.pattern, row.name), row.matches) << row.pattern << " on " << row.name;
  }
}

// Backtracking into every * would take longer than the universe is old.
TEST(GlobMatchTest, TakesNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  const std::string name(2000, 'a');
  EXPECT_TRUE(GlobMatch(pattern, name));
  EXPECT_FALSE(GlobMatch(pattern + 'b', name));
}

TEST(TextFormatTest, Bytes) {
  const struct {
    uint64_t bytes;
    const char* text;
  } rows[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {1536, "1.5 KiB"},
      {(uint64_t{1} << 20) - 1, "1.0 MiB"},
      {uint64_t{1} << 20, "1.0 MiB"},
      {uint64_t{34} << 30, "34.0 GiB"},
      {uint64_t{3} << 40, "3.0 TiB"},
      {UINT64_MAX, "16.0 EiB"},
  };
  for (const auto& row : rows) EXPECT_EQ(FormatBytes(row.bytes), row.text);
}

TEST(TextFormatTest, Times) {
  EXPECT_EQ(FormatSeconds(0.0123), "0.01 s");
  EXPECT_EQ(FormatSeconds(59.99), "59.99 s");
  EXPECT_EQ(FormatSeconds(59.999), "1:00");
  EXPECT_EQ(FormatSeconds(7205), "2:00:05");
  EXPECT_EQ(FormatClock(7), "0:07");
  EXPECT_EQ(FormatRate(uint64_t{3} << 20, 2), "1.5 MiB/s");
  EXPECT_EQ(FormatRate(1, 0), "");
}

TEST(TextFormatTest, Ranks) {
  EXPECT_EQ(FormatRanks({}), "none");
  EXPECT_EQ(FormatRanks({5}), "5");
  EXPECT_EQ(FormatRanks({0, 1, 2, 3, 8, 10, 11}), "0-3, 8, 10-11");
}

TEST(TextFormatTest, TableAlignsColumns) {
  Table table({{"NAME"}, {"BYTES", Align::kRight}});
  table.AddRow({"größe", "7"});
  table.AddRow({"a", "123456"});
  EXPECT_EQ(table.ToText(),
            "  NAME    BYTES\n"
            "  größe       7\n"
            "  a      123456\n");
}

TEST(TextFormatTest, VeryLongNameDoesNotWidenOtherLines) {
  Table table({{""}, {"", Align::kRight}});
  table.AddRow({std::string(1000, 'x'), "1"});
  table.AddRow({"a", "2"});
  EXPECT_EQ(table.ToText(),
            "  " + std::string(1000, 'x') + "  1\n  a" + std::string(61, ' ') + "2\n");
}

TEST(PrintableTest, Names) {
  const struct {
    const char* name;
    const char* text;
  } rows[] = {
      {"layer0.weight", "layer0.weight"},
      {"größe.权重", "größe.权重"},
      {"a\nb\\n", "a\\nb\\\\n"},
      {"\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f"},
      {"\xc2\x9b", "\\u009b"},              // the C1 control CSI
      {"\x9b", "\\x9b"},                    // the same in one byte
      {"\xc0\x9b", "\\xc0\\x9b"},           // overlong
      {"\xe2\x82", "\\xe2\\x82"},           // cut short
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
      {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
  };
  for (const auto& row : rows) EXPECT_EQ(PrintableName(row.name), row.text);
}

TEST(PrintableTest, MessagesKeepTheirLines) {
  EXPECT_EQ(PrintableText("one\ntwo \\x1b \x1b"), "one\ntwo \\x1b \\x1b");
}

}  // namespace
}  // namespace reshard
