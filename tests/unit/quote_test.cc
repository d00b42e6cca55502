#include "src/base/quote.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace reshard::quote_test {
namespace {

TEST(QuoteTest, NothingThatATerminalObeysIsLeft) {
  EXPECT_EQ(Escape("layer.0/w\xc3\xa9"), "layer.0/w\xc3\xa9");
  EXPECT_EQ(Escape("`force`"), "\\x60force\\x60");
  EXPECT_FALSE(IsUnfitForNames("net-`1`_"));
  EXPECT_TRUE(IsUnfitForNames("a\"b") && IsUnfitForNames("a\nb") && IsUnfitForNames("a\\b"));
  EXPECT_EQ(Escape("a\nb\x1b[2J\x7f"), "a\\nb\\x1b[2J\\x7f");
  EXPECT_EQ(Escape(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Escape("\xc2\x9b\xc2\xa0\xc2"), "\\u009b\xc2\xa0\xc2");
  EXPECT_EQ(Quote("say \"hi\" \\"), "\"say \\\"hi\\\" \\\\\"");
}

TEST(QuoteTest, ListsShowTheFirstThreeNames) {
  EXPECT_EQ(FirstOf({}), "");
  EXPECT_EQ(FirstOf({"a", "b"}), "a, b");
  EXPECT_EQ(FirstOf({"rank_0", "rank_1", "rank_10", "rank_11", "rank_2"}),
            "rank_0, rank_1, rank_2 and 2 more");
  const std::string list = FirstOf(std::vector<std::string>(23, "x"));
  EXPECT_EQ(list, "x, x, x and 20 more");
  EXPECT_EQ(FirstNumbers({}), "[]");
  EXPECT_EQ(FirstNumbers({1, -2}), "[1, -2]");
  const std::string numbers = FirstNumbers(std::vector<int64_t>(200'000, 7));
  EXPECT_TRUE(numbers.ends_with("7, 7 and 199980 more]")) << numbers;
}

TEST(QuoteTest, WhatIsNotShownIsCounted) {
  FirstFew few(2);
  EXPECT_EQ(few.Joined(), "");
  EXPECT_EQ(few.Lines(), "");
  few.Add("a");
  EXPECT_FALSE(few.full());
  few.Add("7");
  EXPECT_TRUE(few.full());
  EXPECT_EQ(few.Joined("; "), "a; 7");
  few.Add("c");
  few.AddUnnamed(1'000'000);
  EXPECT_EQ(few.count(), 1'000'003u);
  EXPECT_EQ(few.Joined(), "a, 7 and 1000001 more");
  EXPECT_EQ(few.Lines(), "\n  a\n  7\n  ...");
  EXPECT_EQ(few.Lines("and others"), "\n  a\n  7\n  and others");
}

TEST(QuoteTest, RanksAreRanges) {
  EXPECT_EQ(RangesOf({}), "");
  EXPECT_EQ(RangesOf({7}), "7");
  EXPECT_EQ(RangesOf({0, 1, 2, 8, 10, 11}), "0-2, 8, 10-11");
  NumberRanges ranges;
  for (int64_t i = 0; i < 16; i += 2) ranges.Add(i);
  EXPECT_EQ(ranges.ToWords("rank"), "ranks 0, 2, 4, 6, 8, 10, 12, 14");
  ranges.AddRange(15, 19);
  EXPECT_EQ(ranges.ToText(), "0, 2, 4, 6, 8, 10, 12, 14-19");
  ranges.AddRange(30, std::numeric_limits<int64_t>::max());
  ranges.Add(0);
  EXPECT_EQ(ranges.ToText(), "0, 2, 4, 6, 8, 10, 12, 14-19 and 9223372036854775779 more");
  NumberRanges one;
  one.Add(3);
  EXPECT_EQ(one.ToWords("stage"), "stage 3");
}

TEST(QuoteTest, LongNamesKeepBothEnds) {
  const std::string path = "/root/" + std::string(1000, 'x') + "/net.ckpt";
  const std::string escaped = Escape(path);
  EXPECT_EQ(escaped.size(), 515u);
  EXPECT_TRUE(escaped.starts_with("/root/xx"));
  EXPECT_NE(escaped.find("x...x"), std::string::npos);
  EXPECT_TRUE(escaped.ends_with("x/net.ckpt"));
  EXPECT_EQ(Escape(std::string(512, 'x')), std::string(512, 'x'));
}

}  // namespace
}  // namespace reshard::quote_test
