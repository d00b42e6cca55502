// The optimizer's copies of parameters, which are cut as their parameters are.
//
// Pure; any thread.
#ifndef RESHARD_SRC_MINDSPORE_OPTIMIZER_COPY_H_
#define RESHARD_SRC_MINDSPORE_OPTIMIZER_COPY_H_

#include <optional>
#include <string_view>

#include "reshard/parameters.h"

namespace reshard {

// Returns NAME of `moments.NAME` and the like (OptimizerGroup), or nothing for a name of another
// form.
inline std::optional<std::string_view> ParameterOfCopy(std::string_view name) {
  const std::string_view group = OptimizerGroup(name);
  if (group.empty() || name.size() == group.size() + 1) return std::nullopt;
  return name.substr(group.size() + 1);
}

// Whether it is what a rank has added up since the last update of the weights, which is its own.
inline bool IsAccumulatedGradient(std::string_view name) { return name.starts_with("accu_grads"); }

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_OPTIMIZER_COPY_H_
