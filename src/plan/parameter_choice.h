// ParameterChoice: which parameters of a source are written, and under which names.
//
// Patterns and old names are those of the source; whatever is asked about a layout or a file is
// asked by these names too. A plain value; any number of threads may read it.
#ifndef RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_
#define RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// Returns whether names may be replaced so, in any checkpoint.
// Errors: kInvalidArgument for a name that is empty or longer than a tag may be, and for two
// parameters of one new name.
Status CheckRenames(const std::map<std::string, std::string>& renames);

class ParameterChoice {
 public:
  // All parameters, under their own names.
  ParameterChoice() = default;

  // Those that a pattern of `include` matches (all, where there is none) and none of `exclude`.
  // `renames`, which CheckRenames has passed, maps names of the source to names of the target.
  ParameterChoice(std::vector<std::string> include, std::vector<std::string> exclude,
                  std::map<std::string, std::string> renames);

  bool Takes(std::string_view name) const;

  // Returns the name in the target of the parameter `name`: one of `renames`, or `name` itself.
  const std::string& TargetName(const std::string& name) const;

  const std::vector<std::string>& include() const { return include_; }
  const std::vector<std::string>& exclude() const { return exclude_; }
  const std::map<std::string, std::string>& renames() const { return renames_; }

 private:
  std::vector<std::string> include_;
  std::vector<std::string> exclude_;
  std::map<std::string, std::string> renames_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_PARAMETER_CHOICE_H_
