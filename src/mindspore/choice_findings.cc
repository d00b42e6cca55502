#include "src/mindspore/choice_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/rename_map/name_rules.h"
#include "format/rename_map/renaming.h"
#include "reshard/parameters.h"
#include "reshard/tensor.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

using Names = std::unordered_set<std::string_view>;

Names NamesOfStrategies(const ConversionRule& rule) {
  Names names;
  for (const Strategy* strategy : {rule.source(), rule.target()}) {
    if (strategy == nullptr) continue;
    for (const Strategy::Stage& stage : strategy->stages()) {
      for (const Strategy::Entry layout : stage) names.insert(layout.name);
    }
  }
  return names;
}

void WarnOfPatterns(std::string_view option, const std::vector<std::string>& patterns,
                    const Names& names, std::vector<Warning>& warnings) {
  std::vector<std::string> unused;
  for (const std::string& pattern : patterns) {
    const auto matches = [&](std::string_view name) { return GlobMatch(pattern, name); };
    if (std::none_of(names.begin(), names.end(), matches)) unused.push_back(Quote(pattern));
  }
  if (unused.empty()) return;
  warnings.push_back(
      {WarningCode::kUnusedPatterns,
       fmt::format("{} of the patterns of {} match{} no parameter: {}", unused.size(), option,
                   unused.size() == 1 ? "es" : "", FirstOf(unused))});
}

// Says which parameters fit no rule. Counters of an optimizer have the same names everywhere.
Status CheckRules(const Renaming& renaming, const PlanFindings& findings,
                  std::vector<Warning>& warnings) {
  const std::string& rules = renaming.renames().rules;
  if (rules.empty()) return {};
  uint64_t fitting = 0;
  std::vector<std::string> others;
  for (const auto& [new_name, parameter] : findings.parameters) {
    const std::string& name = parameter.source_name;
    if (renaming.Fits(name)) {
      ++fitting;
    } else if (parameter.kind == ArrayKind::kTensor && OptimizerGroup(name).empty() &&
               ElementCount(parameter.full_shape) != uint64_t{1}) {
      others.push_back(name);
    }
  }
  if (others.empty()) return {};
  const Renaming opposite(Renames{{}, {}, OppositeRules(rules)});
  const auto fits_opposite = std::find_if(
      others.begin(), others.end(), [&](const std::string& name) { return opposite.Fits(name); });
  if (fits_opposite != others.end()) return RulesDoNotFit(rules, *fits_opposite);
  if (fitting == 0) return RulesDoNotFit(rules, others.front());
  std::transform(others.begin(), others.end(), others.begin(),
                 [](const std::string& name) { return Quote(name); });
  warnings.push_back({WarningCode::kUnusedRenames,
                      fmt::format("{} of {} parameters {}: {}; `name_rules` {} has no rule for {}",
                                  others.size(), findings.parameters.size(),
                                  others.size() == 1 ? "keeps its name" : "keep their names",
                                  FirstOf(others), rules, others.size() == 1 ? "it" : "them")});
  return {};
}

void WarnOfRenames(const Renames& renames, const Names& names, std::vector<Warning>& warnings) {
  std::vector<std::string> unused;
  for (const auto& [from, to] : renames.names) {
    if (!names.contains(from)) unused.push_back(Quote(from));
  }
  for (const auto& [pattern, to] : renames.patterns) {
    const auto fits = [pattern = pattern, to = to](std::string_view name) {
      return NameByPattern(pattern, to, name).has_value();
    };
    if (std::none_of(names.begin(), names.end(), fits)) unused.push_back(Quote(pattern));
  }
  if (unused.empty()) return;
  warnings.push_back(
      {WarningCode::kUnusedRenames,
       fmt::format("{} of the names that `renames` replaces {} in no source file: {}",
                   unused.size(), unused.size() == 1 ? "is" : "are", FirstOf(unused))});
}

}  // namespace

Result<ChoiceFindings> FindingsOf(const ParameterChoice& choice, const ConversionRule& rule,
                                  const PlanFindings& findings) {
  ChoiceFindings found;
  if (choice.TakesAll() && choice.renames().empty() && choice.casts().empty()) return found;
  Names names = NamesOfStrategies(rule);
  const bool others_are_left = std::any_of(
      names.begin(), names.end(), [&](std::string_view name) { return choice.Takes(name); });
  if (findings.parameters.empty() && !findings.left_out.empty() && !others_are_left) {
    if (choice.include().empty() && choice.exclude().empty()) {
      return InvalidArgumentError(
          fmt::format("no parameter is left to be written: all {} are states of training, such as "
                      "{}, which `weights_only` leaves out",
                      findings.left_out.size(), Quote(*findings.left_out.begin())));
    }
    return ParameterChoice::NothingTaken(findings.left_out.size(), *findings.left_out.begin(),
                                         "written");
  }
  found.left_out = findings.left_out.size();
  names.insert(findings.left_out.begin(), findings.left_out.end());
  for (const auto& [name, parameter] : findings.parameters) {
    names.insert(parameter.source_name);
    if (parameter.source_name != name) ++found.renamed;
  }
  WarnOfPatterns("`include`", choice.include(), names, found.warnings);
  WarnOfPatterns("`exclude`", choice.exclude(), names, found.warnings);
  std::vector<std::string> casts;
  for (const Selection::CastRule& cast : choice.casts()) {
    if (!cast.pattern.empty()) casts.push_back(cast.pattern);
  }
  WarnOfPatterns("`casts`", casts, names, found.warnings);
  WarnOfRenames(choice.renames(), names, found.warnings);
  RESHARD_RETURN_IF_ERROR(CheckRules(choice.renaming(), findings, found.warnings));
  return found;
}

}  // namespace reshard
