// GlobMatch: what each kind of pattern matches, and how long it may take.
#include "reshard/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace reshard {
namespace {

TEST(Glob, Matches) {
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
TEST(Glob, TakesNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  const std::string name(2000, 'a');
  EXPECT_TRUE(GlobMatch(pattern, name));
  EXPECT_FALSE(GlobMatch(pattern + 'b', name));
}

}  // namespace
}  // namespace reshard
