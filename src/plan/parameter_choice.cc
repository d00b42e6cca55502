#include "src/plan/parameter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/quote.h"
#include "src/cast/cast.h"
#include "src/plan/training_counter.h"

namespace reshard {
namespace {

bool MatchesAny(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [name](const std::string& pattern) { return GlobMatch(pattern, name); });
}

// Whether the rule is for a tensor.
bool Matches(const Selection::CastRule& rule, std::string_view name, const Shape& full_shape,
             const std::function<bool(std::string_view)>& has) {
  if (!rule.pattern.empty()) return GlobMatch(rule.pattern, name);
  return ElementCount(full_shape).value_or(0) != 1 && OptimizerGroup(name, has).empty();
}

}  // namespace

Status CheckCasts(const std::vector<Selection::CastRule>& casts) {
  for (auto rule = casts.begin(); rule != casts.end(); ++rule) {
    if (rule->dtype && !IsCastTarget(*rule->dtype)) {
      return InvalidArgumentError(
          fmt::format("`casts`: cannot cast to {}; expected Float16, BFloat16, Float32, Float64, "
                      "Float8E4M3FN or Float8E5M2",
                      DTypeName(*rule->dtype)));
    }
    const bool is_repeated = std::any_of(
        casts.begin(), rule,
        [&](const Selection::CastRule& earlier) { return earlier.pattern == rule->pattern; });
    if (is_repeated) {
      return InvalidArgumentError(
          rule->pattern.empty()
              ? "`casts`: two rules without a pattern; the first would decide: remove one"
              : fmt::format("`casts`: two rules for {}; the first would decide: remove one",
                            Quote(rule->pattern)));
    }
  }
  return {};
}

ParameterChoice::ParameterChoice(std::vector<std::string> include, std::vector<std::string> exclude,
                                 Renames renames, std::vector<Selection::CastRule> casts)
    : include_(std::move(include)),
      exclude_(std::move(exclude)),
      renaming_(std::move(renames)),
      casts_(std::move(casts)) {}

bool ParameterChoice::Excludes(std::string_view name) const { return MatchesAny(exclude_, name); }

bool ParameterChoice::Takes(std::string_view name) const {
  if (weights_only_ && (!OptimizerGroup(name).empty() || IsAccumulatedGradient(name))) return false;
  return (include_.empty() || MatchesAny(include_, name)) && !MatchesAny(exclude_, name);
}

bool ParameterChoice::DependsOnMore(std::string_view name) const {
  return weights_only_ && (MayBeTrainingNumber(name) || !ParameterOfState(name).empty());
}

bool ParameterChoice::Takes(const Parameter& parameter,
                            const std::function<bool(std::string_view)>& has) const {
  const auto& [name, kind, dtype, full_shape] = parameter;
  if (!Takes(name)) return false;
  if (!DependsOnMore(name)) return true;
  if (kind == ArrayKind::kTensor && IsTrainingNumber(name, dtype, full_shape)) return false;
  return OptimizerGroup(name, has).empty();
}

Result<DType> ParameterChoice::TargetDType(std::string_view name, DType dtype,
                                           const Shape& full_shape,
                                           const std::function<bool(std::string_view)>& has) const {
  if (casts_.empty() || !IsFloat(dtype)) return dtype;
  const auto rule =
      std::find_if(casts_.begin(), casts_.end(), [&](const Selection::CastRule& candidate) {
        return Matches(candidate, name, full_shape, has);
      });
  if (rule == casts_.end() || !rule->dtype || *rule->dtype == dtype) return dtype;
  if (IsCastSource(dtype)) return *rule->dtype;
  return UnsupportedError(
      fmt::format("parameter {}: cannot cast {} to {}: only Float16, BFloat16, Float32 and Float64 "
                  "can be cast; keep it with an earlier rule of `casts`",
                  Quote(name), DTypeName(dtype), DTypeName(*rule->dtype)));
}

Status ParameterChoice::NothingTaken(uint64_t parameters, std::string_view name,
                                     std::string_view what) {
  return InvalidArgumentError(
      fmt::format("no parameter is left to be {}: `include` and `exclude` leave out all {} "
                  "parameters; a pattern has to match a whole name, such as {}",
                  what, parameters, Quote(name)));
}

}  // namespace reshard
