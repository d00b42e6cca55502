// What is typed for the options that messages of the library name.
#include "tools/cli/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reshard {
namespace {

TEST(OptionWords, StandForTheNamesOfTheLibrary) {
  const struct {
    const char* message;
    const char* words;
  } rows[] = {
      {"pass `force` to replace it", "pass --force to replace it"},
      {"`unmatched=copy`, `unmatched=drop`", "--unmatched copy, --unmatched drop"},
      {"see `unmatched`", "see --unmatched"},
      {"`resume=verify`; `resume`", "--resume=verify; --resume"},
      {"`suffix=-9_1`", "--suffix=-9_1"},
      {"`io.target` or `io.target=buffered`", "--io or --io buffered"},
      {"`Verify` tells", "`reshard verify` tells"},
  };
  for (const auto& row : rows) EXPECT_EQ(InOptionWords(row.message), row.words);
}

TEST(OptionWords, LeaveEverythingElse) {
  for (const std::string text : {"", "`", "a ` b", "``", "`x`", "force", "`force", "`forced`",
                                 "`reshard commit` publishes them", "`other`"}) {
    EXPECT_EQ(InOptionWords(text), text);
  }
  EXPECT_EQ(InOptionWords("a ` b `force`"), "a ` b --force");
  EXPECT_EQ(InOptionWords(InOptionWords("`Verify` `force`")), "`reshard verify` --force");
}

TEST(OptionWords, CommandsMayCallTheSourcesStrategyOtherwise) {
  EXPECT_EQ(InOptionWords("`source.strategy`"), "--src-strategy");
  SpellSourceStrategy("--strategy");
  EXPECT_EQ(InOptionWords("`source.strategy`"), "--strategy");
  SpellSourceStrategy("--src-strategy");
}

TEST(OptionWords, OfSeveralMessages) {
  EXPECT_THAT(InOptionWords(std::vector<std::string>{"`ranks`", "x"}),
              testing::ElementsAre("--rank", "x"));
}

}  // namespace
}  // namespace reshard
