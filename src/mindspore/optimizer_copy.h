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

// Returns NAME of `moments.NAME` and the like (ParameterOfState), or no value for another name.
inline std::optional<std::string_view> ParameterOfCopy(std::string_view name) {
  const std::string_view parameter = ParameterOfState(name);
  return parameter.empty() ? std::nullopt : std::optional(parameter);
}

// As above, with the other parameters of a file: `shape_of` returns the shape of a name, or null.
// An entry with another shape than its parameter is not a copy: optimizers that treat a parameter
// specially keep a single element in place of its state.
template <typename ShapeOf>
std::optional<std::string_view> ParameterOfCopy(std::string_view name, const Shape& shape,
                                                const ShapeOf& shape_of) {
  const auto parameter = ParameterOfCopy(name);
  if (!parameter) return std::nullopt;
  const Shape* const known = shape_of(*parameter);
  const bool is_copy = known != nullptr ? *known == shape : !OptimizerGroup(name).empty();
  return is_copy ? parameter : std::nullopt;
}

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_OPTIMIZER_COPY_H_
