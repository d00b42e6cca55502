#include "src/mindspore/unmatched_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/mindspore/optimizer_copy.h"

namespace reshard {
namespace {

using Views = std::vector<std::string_view>;
using StageSet = std::set<int64_t>;

// Returns what of a parameter's values is copied as if one rank had all of it, though `strategy`,
// one of the rule's, ought to cut it.
bool IsUnmatched(const ConversionRule& rule, const CheckedStrategy& strategy,
                 std::string_view source_name, ArrayKind kind, const Shape& full_shape) {
  if (kind != ArrayKind::kTensor || strategy.Contains(source_name) ||
      ElementCount(full_shape).value_or(0) <= 1) {
    return false;
  }
  // Of one device there is nothing to cut, unless the other strategy has the name and cuts it.
  return strategy.devices_per_stage() > 1 ||
         (rule.Unmatched(source_name) &&
          std::max(rule.source_devices(), rule.target_devices()) > 1);
}

bool IsUnmatched(const ConversionRule& rule, const CheckedStrategy& strategy,
                 const PlanFindings::Parameter& parameter) {
  return IsUnmatched(rule, strategy, parameter.source_name, parameter.kind, parameter.full_shape);
}

Views UnmatchedOf(const ConversionRule& rule, const CheckedStrategy& strategy,
                  const PlanFindings& findings) {
  Views names;
  for (const auto& [target_name, parameter] : findings.parameters) {
    if (IsUnmatched(rule, strategy, parameter)) names.push_back(parameter.source_name);
  }
  return names;
}

StageSet TargetStages(const ConversionRule& rule, std::span<const int64_t> ranks) {
  StageSet stages;
  for (const int64_t rank : ranks) stages.insert(rule.TargetStage(rank));
  return stages;
}

// Calls visit(name) with the names of `strategy` that are written on one of the target stages
// where a file has them. Names of several stages come several times.
template <typename Visit>
void ForEachName(const ConversionRule& rule, const CheckedStrategy& strategy,
                 const StageSet& targets, const Visit& visit) {
  // What the target strategy has goes to its stages only.
  const CheckedStrategy* target_strategy = rule.target();
  const auto is_written = [&](std::string_view name) {
    const auto lowest =
        target_strategy == nullptr ? std::nullopt : target_strategy->LowestStage(name);
    return !lowest || targets.contains(*lowest) ||
           std::any_of(targets.begin(), targets.end(), [&](int64_t target) {
             return rule.FateOf(name, target) != ConversionRule::Fate::kDrop;
           });
  };
  const bool of_source = &strategy == rule.source();
  StageSet stages;
  for (const int64_t target : targets) {
    if (of_source) {
      for (const int64_t stage : rule.NeededSourceStages(target)) stages.insert(stage);
    } else {
      stages.insert(target);
    }
  }
  for (const int64_t stage : stages) {
    for (const LayoutEntry layout : strategy.stages()[static_cast<size_t>(stage)].layouts()) {
      if (!of_source || is_written(layout.name)) visit(layout.name);
    }
  }
}

std::unordered_set<std::string_view> NamesInFiles(const PlanFindings& findings) {
  std::unordered_set<std::string_view> names(findings.left_out.begin(), findings.left_out.end());
  for (const auto& [target_name, parameter] : findings.parameters) {
    names.insert(parameter.source_name);
  }
  return names;
}

// A name behind an optimizer's prefix, which is no part of what changes.
struct SplitName {
  std::string_view group;
  std::string_view rest;
};

SplitName Split(std::string_view name) {
  const auto rest = ParameterOfCopy(name);
  return rest ? SplitName{OptimizerGroup(name), *rest} : SplitName{"", name};
}

// So names that end alike stand side by side.
bool EndsBefore(const SplitName& a, const SplitName& b) {
  if (a.group != b.group) return a.group < b.group;
  return std::lexicographical_compare(a.rest.rbegin(), a.rest.rend(), b.rest.rbegin(),
                                      b.rest.rend());
}

// Returns the bytes of the components in which both names end alike.
size_t CommonEnd(const SplitName& a, const SplitName& b) {
  if (a.group != b.group) return 0;
  const auto from_end = [](std::string_view text, size_t i) {
    return i == text.size() ? '.' : text[text.size() - 1 - i];
  };
  const size_t most = std::min(a.rest.size(), b.rest.size());
  size_t whole = 0;
  for (size_t i = 0; i <= most && from_end(a.rest, i) == from_end(b.rest, i); ++i) {
    if (from_end(a.rest, i) == '.') whole = i;
  }
  return whole;
}

struct PrefixChange {
  std::string_view in_files;
  std::string_view in_strategy;
  friend auto operator<=>(const PrefixChange&, const PrefixChange&) = default;
};

// The change without a first component that both have.
PrefixChange Normalized(const PrefixChange& change) {
  const size_t length = change.in_files.substr(0, change.in_files.find('.')).size() + 1;
  const std::string_view first = change.in_files.substr(0, length);
  if (first.empty() || !change.in_strategy.starts_with(first)) return change;
  return {change.in_files.substr(first.size()), change.in_strategy.substr(first.size())};
}

// Layers and experts are numbered: one of them in place of another is no change of prefix.
bool HasDigit(std::string_view text) {
  return text.find_first_of("0123456789") != std::string_view::npos;
}

struct Votes {
  size_t count = 0;
  std::string_view in_files;  // one of the names, and what it would be
  std::string_view in_strategy;
};

// Returns by which changes names of files become names of the strategy, and how many.
std::map<PrefixChange, Votes> CountChanges(const Views& in_files, const Views& in_strategy) {
  constexpr int kMostAlike = 8;  // names to either side that one name is compared with
  std::map<PrefixChange, Votes> changes;
  std::vector<std::pair<SplitName, std::string_view>> ends;
  ends.reserve(in_strategy.size());
  for (const std::string_view name : in_strategy) ends.emplace_back(Split(name), name);
  const auto before = [](const auto& a, const auto& b) { return EndsBefore(a.first, b.first); };
  std::sort(ends.begin(), ends.end(), before);
  for (const std::string_view name : in_files) {
    const SplitName own = Split(name);
    const auto place = std::lower_bound(ends.begin(), ends.end(), std::pair(own, name), before);
    size_t longest = place == ends.end() ? 0 : CommonEnd(own, place->first);
    if (place != ends.begin()) longest = std::max(longest, CommonEnd(own, (place - 1)->first));
    if (longest == 0) continue;
    const auto vote = [&](const auto& other) {
      if (CommonEnd(own, other.first) != longest) return false;
      const std::string_view rest = other.first.rest;
      const PrefixChange change = Normalized(
          {own.rest.substr(0, own.rest.size() - longest), rest.substr(0, rest.size() - longest)});
      if (HasDigit(change.in_files) || HasDigit(change.in_strategy)) return true;
      Votes& votes = changes[change];
      if (votes.count++ == 0 || name.size() < votes.in_files.size()) {
        votes.in_files = name;
        votes.in_strategy = other.second;
      }
      return true;
    };
    auto next = place;
    for (int i = 0; i < kMostAlike && next != ends.end() && vote(*next); ++i) ++next;
    next = place;
    for (int i = 0; i < kMostAlike && next != ends.begin() && vote(*(next - 1)); ++i) --next;
  }
  return changes;
}

std::string WhatBecomesOfThem(const ConversionRule& rule, const CheckedStrategy& strategy) {
  return &strategy == rule.source()
             ? "each would be taken from one source rank as if it had the full tensor"
             : "each would be written as it stands, not cut";
}

std::string WordsOf(const PrefixChange& change) {
  if (change.in_files.empty()) {
    return fmt::format("the strategy's have {} before them", Quote(change.in_strategy));
  }
  if (change.in_strategy.empty()) {
    return fmt::format("the files' have {} before them", Quote(change.in_files));
  }
  return fmt::format("{} in the files, {} in the strategy", Quote(change.in_files),
                     Quote(change.in_strategy));
}

Status PrefixError(const ConversionRule& rule, const CheckedStrategy& strategy, size_t unmatched,
                   const PrefixChange& change, const Votes& votes) {
  return MismatchError(fmt::format(
      "{}: has no layout for {} of the files' tensors, but {} of their names differ from names of "
      "the strategy by a prefix only: {}, as in {} and {}; {}; give a strategy with the names of "
      "the files",
      Escape(strategy.path()), unmatched, votes.count, WordsOf(change), Quote(votes.in_files),
      Quote(votes.in_strategy), WhatBecomesOfThem(rule, strategy)));
}

Status CheckPrefixes(const ConversionRule& rule, std::span<const int64_t> ranks,
                     const PlanFindings& findings) {
  for (const CheckedStrategy* strategy : {rule.source(), rule.target()}) {
    if (strategy == nullptr) continue;
    const Views unmatched = UnmatchedOf(rule, *strategy, findings);
    if (unmatched.empty()) continue;
    Views absent;
    const auto seen = NamesInFiles(findings);
    ForEachName(rule, *strategy, TargetStages(rule, ranks), [&](std::string_view name) {
      if (!seen.contains(name)) absent.push_back(name);
    });
    std::sort(absent.begin(), absent.end());
    absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
    for (const auto& [change, votes] : CountChanges(unmatched, absent)) {
      // One prefix in place of another: of a single name that would be any other name.
      const bool replaced = !change.in_files.empty() && !change.in_strategy.empty();
      if (votes.count * 2 < unmatched.size() || (replaced && votes.count == 1)) continue;
      return PrefixError(rule, *strategy, unmatched.size(), change, votes);
    }
  }
  return {};
}

Status CheckUnmatchedBytes(const ConversionRule& rule, std::span<const int64_t> ranks,
                           const PlanFindings& findings, uint64_t bytes) {
  // A few large tensors may be honest, as in MindSpore's own tests of such conversions.
  constexpr size_t kMany = 10;
  for (const CheckedStrategy* strategy : {rule.source(), rule.target()}) {
    if (strategy == nullptr) continue;
    std::vector<std::string> names;
    uint64_t unmatched = 0;
    std::map<int64_t, uint64_t> ranks_of_stage;
    for (const int64_t rank : ranks) ++ranks_of_stage[rule.TargetStage(rank)];
    for (const auto& [target_name, parameter] : findings.parameters) {
      if (!IsUnmatched(rule, *strategy, parameter)) continue;
      names.push_back(Quote(parameter.source_name));
      for (const auto& [stage, count] : ranks_of_stage) {
        if (rule.FateOf(parameter.source_name, stage) == ConversionRule::Fate::kCopy) {
          unmatched += parameter.bytes * count;
        }
      }
    }
    if (unmatched <= bytes / 2) continue;
    const auto seen = NamesInFiles(findings);
    const bool any_matched = std::any_of(
        seen.begin(), seen.end(), [&](std::string_view name) { return strategy->Contains(name); });
    if (any_matched && names.size() < kMany) continue;
    return MismatchError(fmt::format(
        "{}: has no layout for {} of the files' tensors, which are {} of the {} to be "
        "copied: {}; {}; give the strategy of this checkpoint, with the names of the files",
        Escape(strategy->path()), names.size(), FormatBytes(unmatched), FormatBytes(bytes),
        FirstOf(names), WhatBecomesOfThem(rule, *strategy)));
  }
  return {};
}

}  // namespace

Status CheckNames(const ConversionRule& rule, std::span<const int64_t> ranks,
                  const PlanFindings& findings, uint64_t bytes, std::string_view way_out) {
  Status status = CheckPrefixes(rule, ranks, findings);
  if (status.ok()) status = CheckUnmatchedBytes(rule, ranks, findings, bytes);
  if (status.ok() || way_out.empty()) return status;
  return MismatchError(fmt::format("{}; {}", status.message(), way_out));
}

bool HasUnmatched(const ConversionRule& rule, std::span<const SourceTensor> tensors) {
  for (const CheckedStrategy* strategy : {rule.source(), rule.target()}) {
    if (strategy == nullptr) continue;
    if (std::any_of(tensors.begin(), tensors.end(), [&](const SourceTensor& tensor) {
          return IsUnmatched(rule, *strategy, tensor.name, tensor.kind, tensor.full_shape);
        })) {
      return true;
    }
  }
  return false;
}

Status CheckNames(const ConversionRule& rule, const PlanFindings& findings) {
  uint64_t bytes = 0;
  for (const auto& [target_name, parameter] : findings.parameters) bytes += parameter.bytes;
  return CheckNames(rule, std::array<int64_t, 1>{0}, findings, bytes, "");
}

}  // namespace reshard
