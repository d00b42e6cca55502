// How dtypes and shapes of parameters look. Pure functions.
#ifndef RESHARD_TOOLS_CLI_PARAMETER_TEXT_H_
#define RESHARD_TOOLS_CLI_PARAMETER_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reshard/stored_array.h"
#include "tools/cli/text_format.h"

namespace reshard {

// The dtype's name, "map" for a MapTensor.
inline std::string_view TypeName(ArrayKind kind, DType dtype) {
  return kind == ArrayKind::kMapTensor ? "map" : DTypeName(dtype);
}

// "[2, 3]", "-" for what has no shape.
inline std::string ShapeText(ArrayKind kind, const Shape& shape) {
  return kind == ArrayKind::kTensor ? FormatList(shape) : "-";
}

// A list, null for what has no shape.
inline nlohmann::ordered_json ShapeAsJson(ArrayKind kind, const Shape& shape) {
  return kind == ArrayKind::kTensor ? nlohmann::ordered_json(shape) : nlohmann::ordered_json();
}

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_PARAMETER_TEXT_H_
