#include "src/base/quote.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reshard {
namespace {

TEST(QuoteTest, NothingThatATerminalObeysIsLeft) {
  EXPECT_EQ(Escape("layer.0/w\xc3\xa9"), "layer.0/w\xc3\xa9");
  EXPECT_EQ(Escape("a\nb\x1b[2J\x7f"), "a\\nb\\x1b[2J\\x7f");
  EXPECT_EQ(Escape(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Escape("\xc2\x9b\xc2\xa0\xc2"), "\\u009b\xc2\xa0\xc2");
  EXPECT_EQ(Quote("say \"hi\" \\"), "\"say \\\"hi\\\" \\\\\"");
}

TEST(QuoteTest, ListsShowTheFirstTwenty) {
  EXPECT_EQ(FirstOf({}), "");
  EXPECT_EQ(FirstOf({"a", "b"}), "a, b");
  const std::string list = FirstOf(std::vector<std::string>(23, "x"));
  EXPECT_TRUE(list.ends_with("x, x and 3 more")) << list;
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
  few.Add(7);
  EXPECT_TRUE(few.full());
  EXPECT_EQ(few.Joined("; "), "a; 7");
  EXPECT_EQ(few.Dotted(), "a, 7");
  few.Add("c");
  few.AddUnnamed(1'000'000);
  EXPECT_EQ(few.count(), 1'000'003u);
  EXPECT_EQ(few.Joined(), "a, 7 and 1000001 more");
  EXPECT_EQ(few.Dotted(), "a, 7, ...");
  EXPECT_EQ(few.Lines(), "\n  a\n  7\n  ...");
  EXPECT_EQ(few.Lines("and others"), "\n  a\n  7\n  and others");
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
}  // namespace reshard
