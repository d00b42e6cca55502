#include "reshard/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
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

// The set that begins at pattern[0] == '[', or no value if it has no end. A ] right behind the
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

// Returns the literal parts that occur in each matching name: the parts between wildcards, up to
// the first set or escape.
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

// A row of the list of optimizer states, which is sorted by `text`.
struct StateName {
  enum class Kind : uint8_t { kWhole, kPart, kLone };
  Kind kind;
  std::string_view text;
};

using Kind = StateName::Kind;
constexpr StateName kStates[] = {
#include "src/base/optimizer_states.inc"
};

// Prefixes of states that modules of a network are named by, too.
constexpr std::string_view kWords[] = {"ax.", "linear.", "moment.", "prev.", "stat."};

bool IsWord(std::string_view prefix) {
  return std::find(std::begin(kWords), std::end(kWords), prefix) != std::end(kWords);
}

// Returns the row of the longest prefix of the name, or of the name itself; or null.
const StateName* StateOf(std::string_view name) {
  const StateName* longest = nullptr;
  for (const StateName& state : kStates) {
    if (name.empty() || state.text.front() != name.front() || !name.starts_with(state.text)) {
      continue;
    }
    if (state.kind == Kind::kLone && name.size() != state.text.size()) continue;
    if (longest == nullptr || state.text.size() > longest->text.size()) longest = &state;
  }
  return longest;
}

// Returns the prefix without the separator in front of the name.
std::string_view GroupOf(const StateName& state) {
  std::string_view group = state.text;
  if (state.kind != Kind::kLone) group.remove_suffix(1);
  return group;
}

// PyTorch's optimizer states stand behind or within longer names: "optim.state.w.exp_avg".
std::string_view TorchState(std::string_view name) {
  for (const std::string_view state : {".max_exp_avg_sq", ".exp_avg_sq", ".exp_avg"}) {
    if (name.find(state) != std::string_view::npos) return state.substr(1);
  }
  return {};
}

// Whether the checkpoint has the parameter that `name` would be a state of, or another state of
// that parameter.
bool IsStateOfParameter(const StateName& state, std::string_view name,
                        const std::function<bool(std::string_view)>& has) {
  const std::string_view parameter = name.substr(state.text.size());
  if (parameter.empty()) return false;
  if (has(parameter)) return true;
  return std::any_of(std::begin(kStates), std::end(kStates), [&](const StateName& other) {
    return other.kind == Kind::kWhole && !IsWord(other.text) &&
           has(std::string(other.text).append(parameter));
  });
}

}  // namespace

inline namespace v0_1 {

bool GlobMatch(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  // The place to continue when a step does not fit: behind the last *, which takes one more byte.
  // Earlier ones need no second try, as the last one can take any bytes that they would.
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

}  // namespace v0_1

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

inline namespace v0_1 {

std::string_view OptimizerGroup(std::string_view name,
                                const std::function<bool(std::string_view)>& has) {
  const StateName* const state = StateOf(name);
  if (state == nullptr) return TorchState(name);
  return !IsWord(state->text) || IsStateOfParameter(*state, name, has) ? GroupOf(*state)
                                                                       : std::string_view();
}

std::string_view OptimizerGroup(std::string_view name) {
  const StateName* const state = StateOf(name);
  if (state == nullptr) return TorchState(name);
  return IsWord(state->text) ? std::string_view() : GroupOf(*state);
}

std::string_view ParameterOfState(std::string_view name) {
  const StateName* const state = StateOf(name);
  if (state == nullptr || state->kind != StateName::Kind::kWhole) return {};
  return name.substr(state->text.size());
}

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::string_view kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // A value that would be printed as 1024.0 belongs to the next unit.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string ParameterCountText(uint64_t count) {
  constexpr std::string_view kSuffixes = "KMBT";
  constexpr uint64_t kThousand = 1000;
  if (count < kThousand) return std::to_string(count);
  uint64_t unit = kThousand;
  size_t suffix = 0;
  // A value that would round to 1000.0 of a unit is 1.00 of the next.
  while (suffix + 1 < kSuffixes.size() && count / unit * 20 + count % unit * 20 / unit >= 19999) {
    unit *= kThousand;
    ++suffix;
  }
  // Two decimals below 100, else one.
  const auto rounded = [&](uint64_t parts) {  // of a unit
    const uint64_t part = unit / parts;
    return count / part + (count % part >= part - part / 2 ? 1 : 0);
  };
  const uint64_t hundredths = rounded(100);
  if (hundredths < 10000) {
    return fmt::format("{}.{:02} {}", hundredths / 100, hundredths % 100, kSuffixes[suffix]);
  }
  const uint64_t tenths = rounded(10);
  return fmt::format("{}.{} {}", tenths / 10, tenths % 10, kSuffixes[suffix]);
}

}  // namespace v0_1

}  // namespace reshard
