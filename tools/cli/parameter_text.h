// How dtypes and shapes of parameters look. Pure functions.
#ifndef RESHARD_TOOLS_CLI_PARAMETER_TEXT_H_
#define RESHARD_TOOLS_CLI_PARAMETER_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reshard/parameter.h"
#include "tools/cli/text_format.h"

namespace reshard {

// The dtype's name, "map" for a MapTensor.
inline std::string_view TypeName(ParameterKind kind, DType dtype) {
  return kind == ParameterKind::kMap ? "map" : DTypeName(dtype);
}

// "[2, 3]", "-" for what has no shape.
inline std::string ShapeText(ParameterKind kind, const Shape& shape) {
  return kind == ParameterKind::kTensor ? FormatList(shape) : "-";
}

// A list, null for what has no shape.
inline nlohmann::ordered_json ShapeAsJson(ParameterKind kind, const Shape& shape) {
  return kind == ParameterKind::kTensor ? nlohmann::ordered_json(shape) : nlohmann::ordered_json();
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_PARAMETER_TEXT_H_
