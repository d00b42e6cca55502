// ParameterChoice: the parameters of a source that are written, with their new names and dtypes.
//
// Patterns and old names are names of the source. So are the names in questions about layouts and
// files. A plain value; any number of threads may read it.
#ifndef RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_
#define RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "format/rename_map/renaming.h"
#include "reshard/options.h"
#include "reshard/parameters.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// Returns whether these casts are valid. Errors: kInvalidArgument for a dtype that is not a target
// of casts, and for two rules with one pattern.
Status CheckCasts(const std::vector<Selection::CastRule>& casts);

class ParameterChoice {
 public:
  // A parameter of the source, as far as the choice depends on it.
  struct Parameter {
    std::string_view name;
    ArrayKind kind = ArrayKind::kTensor;
    DType dtype = DType::kFloat32;
    const Shape& full_shape;
  };

  // All parameters, under their own names.
  ParameterChoice() = default;

  // Takes the parameters that a pattern of `include` matches (all, if it is empty) and no pattern
  // of `exclude`. `renames` maps names of the source to names of the target; CheckRenames has
  // accepted it.
  ParameterChoice(std::vector<std::string> include, std::vector<std::string> exclude,
                  Renames renames, std::vector<Selection::CastRule> casts = {});
  // Then takes no states of training, as Selection::weights_only.
  void set_weights_only(bool weights_only) { weights_only_ = weights_only; }

  // As far as the name tells. Of a few names the other function leaves out the parameter.
  bool Takes(std::string_view name) const;
  // Whether the other facts decide about this name, which may be taken.
  bool DependsOnMore(std::string_view name) const;
  // Exactly. `has` tells the other parameters of the source.
  bool Takes(const Parameter& parameter, const std::function<bool(std::string_view)>& has) const;
  // Whether a pattern of `exclude` matches.
  bool Excludes(std::string_view name) const;
  // Whether nothing is left out.
  bool TakesAll() const { return include_.empty() && exclude_.empty() && !weights_only_; }

  // Returns the failure that no pattern matches any of `parameters` parameters, such as `name`.
  // `what` is the intended use, such as "read". kInvalidArgument.
  static Status NothingTaken(uint64_t parameters, std::string_view name, std::string_view what);

  // Returns the name of parameter `name` in the target, as Renaming::NewName does.
  Result<const std::string*> TargetName(const std::string& name, std::string& made) const {
    return renaming_.NewName(name, made);
  }

  // Returns the target dtype of a tensor of the source; `has` tells the other parameters of the
  // source.
  // Errors: kUnsupported if a rule asks for another dtype, but floats of this dtype cannot be cast.
  Result<DType> TargetDType(std::string_view name, DType dtype, const Shape& full_shape,
                            const std::function<bool(std::string_view)>& has) const;

  const std::vector<std::string>& include() const { return include_; }
  const std::vector<std::string>& exclude() const { return exclude_; }
  bool weights_only() const { return weights_only_; }
  const Renaming& renaming() const { return renaming_; }
  const Renames& renames() const { return renaming_.renames(); }
  const std::vector<Selection::CastRule>& casts() const { return casts_; }

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
  bool weights_only_ = false;
  Renaming renaming_;
  std::vector<Selection::CastRule> casts_;
};

// The choice of a conversion.
inline ParameterChoice ChoiceOf(const Selection& selection) {
  ParameterChoice choice(selection.include, selection.exclude, selection.renames, selection.casts);
  choice.set_weights_only(selection.weights_only);
  return choice;
}

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_
