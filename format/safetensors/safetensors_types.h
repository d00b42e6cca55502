// The element types of safetensors files, and their MindSpore counterparts (SPEC.md, "Types").
//
// Plain values and pure functions.
#ifndef RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_TYPES_H_
#define RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reshard/tensor.h"

namespace reshard {

// The most bytes of a header.
inline constexpr uint64_t kMostSafetensorsHeader = 100'000'000;

// The member of a header that holds strings about the file, and so no tensor's name.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

// The metadata that states a CRC-32 of the tensors, decimal.
inline constexpr std::string_view kSafetensorsCrc = "crc_num";

// The metadata of a tensor of I8 that MindSpore takes for Int4.
inline constexpr std::string_view kInt4Mark = "Int4";

struct SafetensorsType {
  std::string_view name;  // in headers
  DType dtype = DType::kFloat32;
};

// Returns the type of a name in a header, or null.
const SafetensorsType* FindSafetensorsType(std::string_view name);

// Returns the type that a tensor of `dtype` is written as, or null if there is none.
const SafetensorsType* SafetensorsTypeOf(DType dtype);

// Returns the place of a type that is written: tensors are ordered by it.
size_t OrderOf(const SafetensorsType& type);

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_TYPES_H_
