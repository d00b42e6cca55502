// What the command line prints: figures, tables, names made safe.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/page/text_format.h"

namespace reshard::cli_text_test {
namespace {

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

TEST(TextFormatTest, NothingIsHiddenInAName) {
  EXPECT_EQ(PrintableName("a\u202eb\u200b\ufeff"), "a\\u202eb\\u200b\\ufeff");
  EXPECT_EQ(PrintableText("\u2066x\u2028\u061c\u00ad"), "\\u2066x\\u2028\\u061c\\u00ad");
  EXPECT_EQ(PrintableName("\U000e0041"), "\\U000e0041");
  EXPECT_EQ(PrintableName("größe 权重"), "größe 权重");
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
}  // namespace reshard::cli_text_test
