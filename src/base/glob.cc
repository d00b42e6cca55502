#include "reshard/glob.h"

#include <cstddef>
#include <optional>

namespace reshard {
namespace {

// One step of a pattern other than *: how much of the pattern it takes, and whether a byte fits.
struct Step {
  size_t length = 1;
  bool matches = false;
};

// The set that begins at pattern[0] == '[', or nothing when it has no end. A ] right behind the
// opening (or its !) belongs to the set.
std::optional<Step> MatchSet(std::string_view pattern, char c) {
  const auto byte = static_cast<unsigned char>(c);
  size_t i = 1;
  const bool inverted = i < pattern.size() && pattern[i] == '!';
  if (inverted) ++i;
  bool found = false;
  for (const size_t first = i; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > first) return Step{i + 1, found != inverted};
    const auto low = static_cast<unsigned char>(pattern[i]);
    auto high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = static_cast<unsigned char>(pattern[i + 2]);
      i += 2;
    }
    found |= low <= byte && byte <= high;
  }
  return std::nullopt;
}

Step MatchOne(std::string_view pattern, char c) {
  if (pattern[0] == '?') return {1, true};
  if (pattern[0] == '[') {
    if (const std::optional<Step> step = MatchSet(pattern, c)) return *step;
  }
  if (pattern[0] == '\\' && pattern.size() > 1) return {2, pattern[1] == c};
  return {1, pattern[0] == c};
}

}  // namespace

bool GlobMatch(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  // Where to go on when a step does not fit: behind the last *, which takes one more byte. Earlier
  // ones need no second look: the last can take whatever they would.
  std::optional<size_t> retry_pattern;
  size_t retry_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      retry_pattern = ++p;
      retry_name = n;
      continue;
    }
    const Step step = p < pattern.size() ? MatchOne(pattern.substr(p), name[n]) : Step{};
    if (step.matches) {
      p += step.length;
      ++n;
    } else if (retry_pattern) {
      p = *retry_pattern;
      n = ++retry_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace reshard
