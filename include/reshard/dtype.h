// DType: the element types of a MindSpore checkpoint (format/mindspore_checkpoint/SPEC.md,
// "tensor_type").
//
// Implemented in src/tensor.
#ifndef RESHARD_DTYPE_H_
#define RESHARD_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace reshard {

enum class DType : uint8_t {
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBFloat16,
  kBool,
  kComplex64,
  kComplex128,
  kInt4,  // two values in a byte; dims count bytes
  kFloat8E4M3FN,
  kFloat8E5M2,
  kHiFloat8,
  kString,  // UTF-32LE code points
};

// Returns the name that MindSpore writes, such as "Float32" ("str" for kString).
std::string_view DTypeName(DType dtype);

// Returns the dtype with exactly this name, or nothing.
std::optional<DType> ParseDType(std::string_view name);

// Returns the bytes of what one unit of a dim counts: an element; for kInt4 a byte of two values.
uint64_t ItemBytes(DType dtype);

}  // namespace reshard

#endif  // RESHARD_DTYPE_H_
