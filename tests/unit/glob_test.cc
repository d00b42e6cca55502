// Patterns on parameter names, and the first of many that matches.
#include "reshard/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "src/base/glob_list.h"

namespace reshard::glob_test {
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

std::optional<size_t> FirstOfAll(const std::vector<std::string>& patterns,
                                 const std::string& name) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (GlobMatch(patterns[i], name)) return i;
  }
  return std::nullopt;
}

// All texts of up to `length` of these characters.
std::vector<std::string> AllTexts(const std::string& characters, size_t length) {
  std::vector<std::string> texts = {""};
  for (size_t begin = 0, i = 0; i < length; ++i) {
    const size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char c : characters) texts.push_back(texts[begin] + c);
    }
  }
  return texts;
}

TEST(GlobList, FindsWhatTryingAllFinds) {
  const std::vector<std::string> names = AllTexts("ab[", 4);
  const std::vector<std::string> patterns = AllTexts("ab*?[]\\", 4);
  // Each a list of its own length, so that the first match lies anywhere.
  for (size_t first = 0; first < patterns.size(); first += 97) {
    const std::vector<std::string> some(
        patterns.begin() + static_cast<ptrdiff_t>(first),
        patterns.begin() + static_cast<ptrdiff_t>(std::min(first + 140, patterns.size())));
    const GlobList list(some);
    for (const std::string& name : names) {
      ASSERT_EQ(list.FirstMatch(name), FirstOfAll(some, name)) << name << " from " << first;
    }
  }
  EXPECT_EQ(GlobList({}).FirstMatch("a"), std::nullopt);
}

// Each of 60,000 patterns with each of as many names would take half an hour.
TEST(GlobList, DoesNotTryAll) {
  constexpr size_t kCount = 60'000;
  std::vector<std::string> patterns;
  for (size_t i = 0; i < kCount; ++i) {
    const std::string number = std::to_string(i);
    const std::string forms[] = {"layer." + number + ".*", "*." + number + ".weight",
                                 "layer.*" + number + ".w?ight", "layer." + number + ".weight"};
    patterns.push_back(forms[i % std::size(forms)]);
  }
  const GlobList list(patterns);
  for (size_t i = 0; i < kCount; ++i) {
    const std::string name = "layer." + std::to_string(i) + ".weight";
    const std::optional<size_t> first = list.FirstMatch(name);
    ASSERT_TRUE(first && *first <= i && GlobMatch(patterns[*first], name)) << name;
  }
}

}  // namespace
}  // namespace reshard::glob_test
