#include "src/base/glob_list.h"

#include <algorithm>
#include <utility>

#include "reshard/glob.h"

namespace reshard {
namespace {

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

}  // namespace reshard
