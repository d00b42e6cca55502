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
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/mindspore/optimizer_copy.h"
#include "src/plan/training_counter.h"

namespace reshard {
namespace {

using Views = std::vector<std::string_view>;
using StageSet = std::set<int64_t>;
using NameSet = std::unordered_set<std::string_view>;

// Returns whether a parameter's values are copied as if one rank had the whole, although
// `strategy`, one of the rule's, should cut it.
bool IsUnmatched(const ConversionRule& rule, const Strategy& strategy, std::string_view source_name,
                 ArrayKind kind, const Shape& full_shape) {
  if (kind != ArrayKind::kTensor || strategy.Contains(source_name) ||
      ElementCount(full_shape).value_or(0) <= 1) {
    return false;
  }
  // On a single device there is no cut, unless the other strategy has the name and cuts it.
  return strategy.devices_per_stage() > 1 ||
         (rule.Unmatched(source_name) &&
          std::max(rule.source_devices(), rule.target_devices()) > 1);
}

bool IsUnmatched(const ConversionRule& rule, const Strategy& strategy,
                 const PlanFindings::Parameter& parameter) {
  return IsUnmatched(rule, strategy, parameter.source_name, parameter.kind, parameter.full_shape);
}

StageSet TargetStages(const ConversionRule& rule, std::span<const int64_t> ranks) {
  StageSet stages;
  for (const int64_t rank : ranks) stages.insert(rule.TargetStage(rank));
  return stages;
}

// Calls visit(name) with the names of `strategy` that are written on one of the target stages if a
// file has them. Names of several stages come several times.
template <typename Visit>
void ForEachName(const ConversionRule& rule, const Strategy& strategy, const StageSet& targets,
                 const Visit& visit) {
  // The parameters of the target strategy go to its stages only.
  const Strategy* target_strategy = rule.target();
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
    for (const Strategy::Entry layout : strategy.stages()[static_cast<size_t>(stage)]) {
      if (!of_source || is_written(layout.name)) visit(layout.name);
    }
  }
}

NameSet NamesInFiles(const PlanFindings& findings) {
  NameSet names(findings.left_out.begin(), findings.left_out.end());
  for (const auto& [target_name, parameter] : findings.parameters) {
    names.insert(parameter.source_name);
  }
  return names;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSeparator(char c) { return c == '.' || c == '_' || c == '/' || c == '-'; }

// The names of a strategy that no file has, although they are needed; sorted. Without the optimizer
// states of parameters in files, because these states were not saved.
Views AbsentOf(const ConversionRule& rule, const Strategy& strategy, std::span<const int64_t> ranks,
               const PlanFindings& findings) {
  Views absent;
  const auto seen = NamesInFiles(findings);
  ForEachName(rule, strategy, TargetStages(rule, ranks), [&](std::string_view name) {
    const auto own = ParameterOfCopy(name);
    if (!seen.contains(name) && !(own && seen.contains(*own))) absent.push_back(name);
  });
  std::sort(absent.begin(), absent.end());
  absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
  return absent;
}

// Returns NAME of a copy PREFIX.NAME such as an optimizer makes, if NAME has a layout. A prefix of
// an unknown optimizer must have no numbers, as prefixes of layers do, and NAME must not be one of
// `absent`.
std::optional<std::string_view> CopiedName(const Strategy& strategy, const Views& absent,
                                           std::string_view name) {
  const auto own = ParameterOfCopy(name);
  if (own && strategy.Contains(*own)) return own;
  for (size_t begin = 0, dot = name.find('.'); dot != std::string_view::npos;
       begin = dot + 1, dot = name.find('.', begin)) {
    if (HasOnlyDigits(name.substr(begin, dot - begin))) break;
    const std::string_view rest = name.substr(dot + 1);
    if (strategy.Contains(rest) && !std::binary_search(absent.begin(), absent.end(), rest)) {
      return rest;
    }
  }
  return std::nullopt;
}

// Returns the unmatched names of `strategy` that may tell that it is another checkpoint's: no
// copies.
Views EvidenceOf(const ConversionRule& rule, const Strategy& strategy, const Views& absent,
                 const PlanFindings& findings) {
  Views names;
  for (const auto& [target_name, parameter] : findings.parameters) {
    if (IsUnmatched(rule, strategy, parameter)) names.push_back(parameter.source_name);
  }
  std::erase_if(
      names, [&](std::string_view name) { return CopiedName(strategy, absent, name).has_value(); });
  return names;
}

bool HasUnmatched(const ConversionRule& rule, const Strategy& strategy,
                  const PlanFindings& findings) {
  return std::any_of(
      findings.parameters.begin(), findings.parameters.end(),
      [&](const auto& parameter) { return IsUnmatched(rule, strategy, parameter.second); });
}

// A name as words and the characters between them. Each word of digits alone, the number of a layer
// or an expert, is separate.
struct SplitName {
  std::vector<std::string_view> tokens;
  std::vector<std::string_view> numbers;
  std::string form;  // the name with "#" in place of each number
};

// Cuts `name` at its separators, or at '.' alone.
SplitName Split(std::string_view name, bool at_all) {
  const auto separates = [at_all](char c) { return at_all ? IsSeparator(c) : c == '.'; };
  SplitName split;
  for (size_t begin = 0; begin < name.size();) {
    size_t end = begin + 1;
    if (!separates(name[begin])) {
      while (end < name.size() && !separates(name[end])) ++end;
    }
    const std::string_view token = name.substr(begin, end - begin);
    split.tokens.push_back(token);
    if (HasOnlyDigits(token)) {
      split.numbers.push_back(token);
      split.form += '#';
    } else {
      split.form += token;
    }
    begin = end;
  }
  return split;
}

// Names that differ in numbers only.
struct NameForm {
  SplitName example;
  std::string_view name;                                            // of the example
  std::map<std::vector<std::string_view>, std::string_view> names;  // by their numbers
};

using NameForms = std::map<std::string, NameForm>;

NameForms FormsOf(const Views& names, bool at_all) {
  NameForms forms;
  for (const std::string_view name : names) {
    SplitName split = Split(name, at_all);
    NameForm& form = forms[split.form];
    form.names.emplace(split.numbers, name);
    if (form.name.empty()) {
      form.name = name;
      form.example = std::move(split);
    }
  }
  return forms;
}

// One run of words in place of another; numbers in it are "#".
struct Substitution {
  std::string in_files;
  std::string in_strategy;
  friend auto operator<=>(const Substitution&, const Substitution&) = default;
};

// The digits in a text, with a "," behind each sequence.
std::string DigitsIn(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsDigit(text[i])) continue;
    digits += text[i];
    if (i + 1 == text.size() || !IsDigit(text[i + 1])) digits += ',';
  }
  return digits;
}

// Returns the text with "#" in place of each run of digits.
std::string WithoutDigits(std::string_view text) {
  std::string form;
  for (const char c : text) {
    if (!IsDigit(c)) {
      form += c;
    } else if (!form.ends_with('#')) {
      form += '#';
    }
  }
  return form;
}

// Returns the substitution that turns names with one form into names with the other, if a single
// one does. The common begin and end of both names stay, at least one word in all; numbers stay,
// too.
std::optional<Substitution> Between(const SplitName& a, const SplitName& b) {
  if (a.numbers.size() != b.numbers.size()) return std::nullopt;
  const auto alike = [](std::string_view x, std::string_view y) {
    return HasOnlyDigits(x) ? HasOnlyDigits(y) : x == y;
  };
  const auto is_word = [](std::string_view token) {
    return !HasOnlyDigits(token) && !(token.size() == 1 && IsSeparator(token[0]));
  };
  const size_t most = std::min(a.tokens.size(), b.tokens.size());
  size_t begin = 0;
  while (begin < most && alike(a.tokens[begin], b.tokens[begin])) ++begin;
  size_t end = 0;
  while (end < most - begin &&
         alike(a.tokens[a.tokens.size() - 1 - end], b.tokens[b.tokens.size() - 1 - end])) {
    ++end;
  }
  const auto kept = [&](size_t i) { return i < begin || i >= a.tokens.size() - end; };
  bool any_kept = false;
  for (size_t i = 0; i < a.tokens.size(); ++i)
    any_kept = any_kept || (kept(i) && is_word(a.tokens[i]));
  if (!any_kept) return std::nullopt;
  const auto text = [&](const SplitName& name) {
    std::string joined;
    for (size_t i = begin; i + end < name.tokens.size(); ++i) {
      joined += HasOnlyDigits(name.tokens[i]) ? std::string_view("#") : name.tokens[i];
    }
    return joined;
  };
  Substitution change{text(a), text(b)};
  const auto count = [](const std::string& joined) {
    return std::count(joined.begin(), joined.end(), '#');
  };
  if (count(change.in_files) != count(change.in_strategy)) return std::nullopt;
  // The digits of block1 and layer1 belong to a layer, too.
  const std::string a_digits = DigitsIn(change.in_files);
  const std::string b_digits = DigitsIn(change.in_strategy);
  if (a_digits == b_digits) {
    return Substitution{WithoutDigits(change.in_files), WithoutDigits(change.in_strategy)};
  }
  if (!a_digits.empty() && !b_digits.empty()) return std::nullopt;
  return change;
}

struct Votes {
  size_t count = 0;           // at least 1, once counted
  std::string_view in_files;  // an example, and its name after the change
  std::string_view in_strategy;
};

// So many pairs of forms are looked at, the forms of files that are most first.
constexpr size_t kMostPairs = 1'000'000;

// Returns by which substitutions names of files become names of the strategy, and how many.
std::map<Substitution, Votes> CountChanges(const Views& in_files, const Views& in_strategy,
                                           bool at_all) {
  std::map<Substitution, Votes> changes;
  const NameForms files = FormsOf(in_files, at_all);
  const NameForms strategy = FormsOf(in_strategy, at_all);
  std::vector<const NameForm*> order;
  order.reserve(files.size());
  for (const auto& [text, form] : files) order.push_back(&form);
  std::stable_sort(order.begin(), order.end(), [](const NameForm* a, const NameForm* b) {
    return a->names.size() > b->names.size();
  });
  order.resize(std::min(order.size(), kMostPairs / std::max<size_t>(strategy.size(), 1) + 1));
  for (const NameForm* form : order) {
    std::map<Substitution, Votes> own;  // a name counts once
    for (const auto& [text, other] : strategy) {
      // To exchange an optimizer's states for another's, or for weights, is no substitution.
      if (OptimizerGroup(form->name) != OptimizerGroup(other.name)) continue;
      const auto change = Between(form->example, other.example);
      if (!change) continue;
      Votes votes;
      for (const auto& [numbers, name] : form->names) {
        const auto there = other.names.find(numbers);
        if (there == other.names.end() || ++votes.count > 1) continue;
        votes.in_files = name;
        votes.in_strategy = there->second;
      }
      if (votes.count == 0) continue;
      Votes& best = own[*change];
      if (votes.count > best.count) best = votes;
    }
    for (const auto& [change, votes] : own) {
      Votes& all = changes[change];
      if (all.count == 0 || votes.in_files.size() < all.in_files.size()) {
        all.in_files = votes.in_files;
        all.in_strategy = votes.in_strategy;
      }
      all.count += votes.count;
    }
  }
  return changes;
}

std::string WhatBecomesOfThem(const ConversionRule& rule, const Strategy& strategy) {
  return &strategy == rule.source()
             ? "each would be taken from one source rank as if it had the full tensor"
             : "each would be written as it stands, not cut";
}

std::string WordsOf(const Substitution& change) {
  if (change.in_files.empty()) return fmt::format("the files lack {}", Quote(change.in_strategy));
  if (change.in_strategy.empty()) {
    return fmt::format("the strategy lacks {}", Quote(change.in_files));
  }
  return fmt::format("{} in the files is {} in the strategy", Quote(change.in_files),
                     Quote(change.in_strategy));
}

// Whether the change adds or removes whole components at a name's dots. Then a single name is
// evidence. Without this, any name can be made from any other by replacing a part.
bool IsAddedComponent(const Substitution& change) {
  if (!change.in_files.empty() && !change.in_strategy.empty()) return false;
  const std::string& part = change.in_files.empty() ? change.in_strategy : change.in_files;
  return part.starts_with('.') || part.ends_with('.');
}

// Whether one component of a name is replaced, while others and the last one stay, as when a module
// was renamed. Then a single name is evidence, too.
bool IsReplacedComponent(const Votes& votes) {
  constexpr size_t kLeastEqual = 2;
  const SplitName a = Split(votes.in_files, false);
  const SplitName b = Split(votes.in_strategy, false);
  if (a.tokens.size() != b.tokens.size() || a.tokens.back() != b.tokens.back()) return false;
  size_t other = 0;
  size_t equal = 0;
  for (size_t i = 0; i < a.tokens.size(); ++i) {
    if (a.tokens[i] != b.tokens[i]) {
      ++other;
    } else if (a.tokens[i] != ".") {
      ++equal;
    }
  }
  return other == 1 && equal >= kLeastEqual;
}

// Returns the substitution that pairs at least half of `unmatched` with names of `absent`, which no
// file has, if there is one.
std::optional<std::pair<Substitution, Votes>> FindChange(const Views& unmatched,
                                                         const Views& absent) {
  for (const bool at_all : {false, true}) {
    for (const auto& [change, votes] : CountChanges(unmatched, absent, at_all)) {
      if (votes.count * 2 < unmatched.size()) continue;
      if (votes.count == 1 && !IsReplacedComponent(votes) &&
          (at_all || !IsAddedComponent(change))) {
        continue;
      }
      return std::pair(change, votes);
    }
  }
  return std::nullopt;
}

std::string_view CopiesInWords(uint64_t count, bool of_optimizers) {
  if (of_optimizers) return count == 1 ? "optimizer state" : "optimizer states";
  return count == 1 ? "copy of a parameter" : "copies of parameters";
}

Status CheckSubstitutions(const ConversionRule& rule, std::span<const int64_t> ranks,
                          const PlanFindings& findings) {
  for (const Strategy* strategy : {rule.source(), rule.target()}) {
    if (strategy == nullptr) continue;
    if (!HasUnmatched(rule, *strategy, findings)) continue;
    const Views absent = AbsentOf(rule, *strategy, ranks, findings);
    const Views unmatched = EvidenceOf(rule, *strategy, absent, findings);
    const auto found = FindChange(unmatched, absent);
    if (!found) continue;
    const auto& [change, votes] = *found;
    return MismatchError(fmt::format(
        "{}: has no layout for {} of the files' tensors, states of the others not counted, but {} "
        "of "
        "their names are names of the strategy with one change: {}, as in {} and {}; {}; give a "
        "strategy with the names of the files",
        Escape(strategy->path()), unmatched.size(), votes.count, WordsOf(change),
        Quote(votes.in_files), Quote(votes.in_strategy), WhatBecomesOfThem(rule, *strategy)));
  }
  return {};
}

}  // namespace

Status CheckNames(const ConversionRule& rule, std::span<const int64_t> ranks,
                  const PlanFindings& findings, std::string_view way_out) {
  Status status = CheckSubstitutions(rule, ranks, findings);
  if (status.ok() || way_out.empty()) return status;
  return MismatchError(fmt::format("{}; {}", status.message(), way_out));
}

std::vector<std::string> UnmatchedMatrices(const ConversionRule& rule,
                                           std::span<const int64_t> ranks,
                                           const PlanFindings& findings) {
  std::set<std::string> names;
  for (const Strategy* strategy : {rule.source(), rule.target()}) {
    if (strategy == nullptr || !HasUnmatched(rule, *strategy, findings)) continue;
    const Views evidence =
        EvidenceOf(rule, *strategy, AbsentOf(rule, *strategy, ranks, findings), findings);
    const NameSet chosen(evidence.begin(), evidence.end());
    for (const auto& [target_name, parameter] : findings.parameters) {
      if (chosen.contains(parameter.source_name) && parameter.full_shape.size() >= 2 &&
          !IsAccumulatedGradient(parameter.source_name)) {
        names.insert(parameter.source_name);
      }
    }
  }
  return {names.begin(), names.end()};
}

std::vector<Warning> TakeCopies(const ConversionRule& rule, std::span<const int64_t> ranks,
                                PlanFindings& findings) {
  constexpr size_t kMostPrefixes = 5;
  std::vector<Warning> warnings;
  for (const Strategy* strategy : {rule.source(), rule.target()}) {
    if (strategy == nullptr || !HasUnmatched(rule, *strategy, findings)) continue;
    const Views absent = AbsentOf(rule, *strategy, ranks, findings);
    const bool of_source = strategy == rule.source();
    uint64_t count = 0;
    bool all_known = true;
    bool any_cut = false;  // copied as it stands
    std::set<std::string_view> prefixes;
    for (const auto& [target_name, parameter] : findings.parameters) {
      const std::string_view name = parameter.source_name;
      if (!IsUnmatched(rule, *strategy, parameter)) continue;
      const auto copied = CopiedName(*strategy, absent, name);
      if (!copied) continue;
      const std::string quoted = Quote(name);
      auto& whole = of_source ? findings.not_in_source_strategy : findings.not_in_target_strategy;
      const bool is_cut = findings.unmatched_copied.erase(quoted) > 0;
      if (!is_cut && whole.erase(quoted) == 0) continue;
      ++count;
      any_cut = any_cut || is_cut;
      all_known = all_known && ParameterOfCopy(name).has_value();
      prefixes.insert(name.substr(0, name.size() - copied->size()));
    }
    if (count == 0) continue;
    FirstFew options(kMostPrefixes);
    for (const std::string_view prefix : prefixes) {
      options.Add(fmt::format("`exclude='{}*'`", Escape(prefix)));
    }
    warnings.push_back(
        {WarningCode::kWithoutLayout,
         fmt::format("{}: has no layout for {} {}, {}; to leave {} out, pass {}",
                     Escape(strategy->path()), count, CopiesInWords(count, all_known),
                     any_cut     ? "copied unchanged from one source rank"
                     : of_source ? "taken from one source rank as if it had the full tensor"
                                 : "written in full for each rank",
                     count == 1 ? "it" : "them", options.Joined(" and "))});
  }
  return warnings;
}

bool HasUnmatched(const ConversionRule& rule, std::span<const SourceTensor> tensors) {
  for (const Strategy* strategy : {rule.source(), rule.target()}) {
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
  return CheckNames(rule, std::array<int64_t, 1>{0}, findings, "");
}

}  // namespace reshard
