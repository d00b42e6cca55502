#include "format/safetensors/safetensors_types.h"

#include <algorithm>
#include <array>

namespace reshard {
namespace {

// In the order in which the library writes tensors.
constexpr std::array<SafetensorsType, 22> kTypes = {{
    {"U64", DType::kUInt64},
    {"I64", DType::kInt64},
    {"F64", DType::kFloat64},
    {"C64", DType::kComplex64},
    {"F32", DType::kFloat32},
    {"U32", DType::kUInt32},
    {"I32", DType::kInt32},
    {"BF16", DType::kBFloat16},
    {"F16", DType::kFloat16},
    {"U16", DType::kUInt16},
    {"I16", DType::kInt16},
    {"F8_E5M2FNUZ", DType::kFloat8E5M2FNUZ},
    {"F8_E4M3FNUZ", DType::kFloat8E4M3FNUZ},
    {"F8_E8M0", DType::kFloat8E8M0},
    {"F8_E4M3", DType::kFloat8E4M3FN},
    {"F8_E5M2", DType::kFloat8E5M2},
    {"I8", DType::kInt8},
    {"U8", DType::kUInt8},
    {"F6_E3M2", DType::kFloat6E3M2},
    {"F6_E2M3", DType::kFloat6E2M3},
    {"F4", DType::kFloat4E2M1},
    {"BOOL", DType::kBool},
}};

}  // namespace

const SafetensorsType* FindSafetensorsType(std::string_view name) {
  const auto* const found =
      std::find_if(kTypes.begin(), kTypes.end(),
                   [name](const SafetensorsType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

const SafetensorsType* SafetensorsTypeOf(DType dtype) {
  if (dtype == DType::kInt4) dtype = DType::kInt8;
  const auto* const found =
      std::find_if(kTypes.begin(), kTypes.end(),
                   [dtype](const SafetensorsType& type) { return type.dtype == dtype; });
  return found == kTypes.end() ? nullptr : found;
}

size_t OrderOf(const SafetensorsType& type) { return static_cast<size_t>(&type - kTypes.data()); }

}  // namespace reshard
