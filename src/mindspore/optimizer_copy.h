// The optimizer's copies of parameters, which are cut as their parameters are.
//
// Pure; any thread.
#ifndef RESHARD_SRC_MINDSPORE_OPTIMIZER_COPY_H_
#define RESHARD_SRC_MINDSPORE_OPTIMIZER_COPY_H_

#include <optional>
#include <string_view>

#include "reshard/parameters.h"
#include "reshard/tensor.h"

namespace reshard {

// Returns NAME of `moments.NAME` and the like (ParameterOfState), or nothing for a name of another
// form.
inline std::optional<std::string_view> ParameterOfCopy(std::string_view name) {
  const std::string_view parameter = ParameterOfState(name);
  return parameter.empty() ? std::nullopt : std::optional(parameter);
}

// As above, of what a file has beside other parameters: `shape_of` returns the shape of the one of
// a name, or null. What has another shape than its parameter is no copy of it: optimizers that
// treat a parameter otherwise keep one element in place of its state.
template <typename ShapeOf>
std::optional<std::string_view> ParameterOfCopy(std::string_view name, const Shape& shape,
                                                const ShapeOf& shape_of) {
  const auto parameter = ParameterOfCopy(name);
  if (!parameter) return std::nullopt;
  const Shape* const known = shape_of(*parameter);
  const bool is_copy = known != nullptr ? *known == shape : !OptimizerGroup(name).empty();
  return is_copy ? parameter : std::nullopt;
}

// Whether it is what a rank has added up since the last update of the weights, which is its own.
inline bool IsAccumulatedGradient(std::string_view name) { return name.starts_with("accu_grads"); }

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_OPTIMIZER_COPY_H_
