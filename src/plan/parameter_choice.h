// ParameterChoice: which parameters of a source are written, under which names, and as what.
//
// Patterns and old names are those of the source; whatever is asked about a layout or a file is
// asked by these names too. A plain value; any number of threads may read it.
#ifndef RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_
#define RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/options.h"
#include "reshard/parameters.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// Returns whether names may be replaced so, in any checkpoint.
// Errors: kInvalidArgument for a name that is empty or longer than a tag may be, for two parameters
// of one new name, and for a pattern without `*`, or with another number of them than its new name.
Status CheckRenames(const Renames& renames);

// Returns the new name of `name` by one of Renames::patterns, or nothing where it does not fit.
std::optional<std::string> NameByPattern(std::string_view pattern, std::string_view new_name,
                                         std::string_view name);

// Returns whether floats may be cast so. Errors: kInvalidArgument for a dtype that nothing is cast
// to, and for two rules of one pattern.
Status CheckCasts(const std::vector<CastRule>& casts);

class ParameterChoice {
 public:
  // All parameters, under their own names.
  ParameterChoice() = default;

  // Those that a pattern of `include` matches (all, where there is none) and none of `exclude`.
  // `renames`, which CheckRenames has passed, maps names of the source to names of the target.
  ParameterChoice(std::vector<std::string> include, std::vector<std::string> exclude,
                  Renames renames, std::vector<CastRule> casts = {});

  bool Takes(std::string_view name) const;
  // Whether a pattern of `exclude` matches.
  bool Excludes(std::string_view name) const;
  // Whether there are no patterns.
  bool TakesAll() const { return include_.empty() && exclude_.empty(); }

  // Returns the failure where the patterns take none of `parameters` parameters, one of which is
  // `name`; `what` would have become of them, such as "read". kInvalidArgument.
  static Status NothingTaken(uint64_t parameters, std::string_view name, std::string_view what);

  // Returns the name in the target of the parameter `name`: that one itself, one of `renames`, or
  // `made`, where a pattern makes it. It is good as long as both, and this.
  // Errors: kInvalidArgument where two patterns fit, or the new name is longer than a tag may be.
  Result<const std::string*> TargetName(const std::string& name, std::string& made) const;

  // Returns the dtype in the target of a tensor of the source; `has` says what else the source has.
  // Errors: kUnsupported where a rule asks for another one, but floats of this dtype are not cast.
  Result<DType> TargetDType(std::string_view name, DType dtype, const Shape& full_shape,
                            const HasParameter& has) const;

  const std::vector<std::string>& include() const { return include_; }
  const std::vector<std::string>& exclude() const { return exclude_; }
  const Renames& renames() const { return renames_; }
  const std::vector<CastRule>& casts() const { return casts_; }

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
  Renames renames_;
  std::vector<CastRule> casts_;
};

// What a conversion takes of its source.
inline ParameterChoice ChoiceOf(const Selection& selection) {
  return {selection.include, selection.exclude, selection.renames, selection.casts};
}

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_
