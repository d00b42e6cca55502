#include "reshard/parameter_names.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "src/base/glob_list.h"

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

// Returns the stretches of a pattern that each name that it matches has in it: what lies between
// wildcards, up to the first set or escape.
std::vector<std::string_view> LiteralParts(std::string_view pattern) {
  pattern = pattern.substr(0, pattern.find_first_of("[\\"));
  std::vector<std::string_view> parts;
  while (!pattern.empty()) {
    const size_t end = std::min(pattern.find_first_of("*?"), pattern.size());
    if (end > 0) parts.push_back(pattern.substr(0, end));
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
  }
  return parts;
}

}  // namespace

bool v0_1::GlobMatch(std::string_view pattern, std::string_view name) {
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

GlobList::GlobList(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {
  std::unordered_map<std::string_view, size_t> patterns_with;
  for (const std::string& pattern : patterns_) {
    for (const std::string_view part : LiteralParts(pattern)) ++patterns_with[part];
  }
  for (size_t i = 0; i < patterns_.size(); ++i) {
    const std::vector<std::string_view> parts = LiteralParts(patterns_[i]);
    const auto rarest =
        std::min_element(parts.begin(), parts.end(), [&](std::string_view a, std::string_view b) {
          return patterns_with[a] < patterns_with[b];
        });
    const std::string_view part = rarest == parts.end() ? std::string_view() : *rarest;
    by_part_[part].push_back(i);
    lengths_.insert(part.size());
  }
}

std::optional<size_t> GlobList::FirstMatch(std::string_view name) const {
  std::optional<size_t> first;
  const auto look = [&](std::string_view part) {
    const auto found = by_part_.find(part);
    if (found == by_part_.end()) return;
    for (const size_t number : found->second) {
      if (first && number >= *first) break;
      if (GlobMatch(patterns_[number], name)) first = number;
    }
  };
  for (const size_t length : lengths_) {
    if (length > name.size()) break;
    const size_t last = length == 0 ? 0 : name.size() - length;
    for (size_t begin = 0; begin <= last; ++begin) look(name.substr(begin, length));
  }
  return first;
}

std::string_view v0_1::OptimizerGroup(std::string_view name) {
  constexpr std::string_view kGroups[] = {"adam_m",  "adam_v",  "accu_grads",
                                          "moments", "moment1", "moment2"};
  for (const std::string_view group : kGroups) {
    if (name.starts_with(group) && name.substr(group.size()).starts_with('.')) return group;
  }
  return {};
}

}  // namespace reshard
