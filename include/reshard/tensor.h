// The parts of a tensor's description: DType, Shape, Box, TensorInfo. StoredArray is one entry of a
// checkpoint file.
//
// Shapes and boxes count elements, slowest dimension first (row-major). Offsets and lengths are
// bytes of the file. Plain values, but StoredArray refers to others; no locking.
//
// Implemented in src/tensor.
#ifndef RESHARD_TENSOR_H_
#define RESHARD_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"

namespace reshard {
inline namespace v0_1 {

// The element types of a MindSpore checkpoint (format/mindspore_checkpoint/SPEC.md, "tensor_type").
// The types from kFloat8E8M0 on are in safetensors files only (format/safetensors/SPEC.md).
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
  kFloat8E8M0,
  kFloat8E4M3FNUZ,
  kFloat8E5M2FNUZ,
  kFloat6E2M3,  // four values in three bytes, which the last dimension counts
  kFloat6E3M2,  // likewise
  kFloat4E2M1,  // two values in a byte; the last dimension counts bytes
};

// Returns the name that MindSpore writes, such as "Float32" ("str" for kString). Other dtypes have
// a name of the same form.
std::string_view DTypeName(DType dtype);

// Returns the dtype with exactly this name.
std::optional<DType> ParseDType(std::string_view name);

// Returns the bytes in one unit of the last dimension. A unit is one element, or several elements
// if they are smaller than a byte.
uint64_t ItemBytes(DType dtype);

// Returns the number of elements in such a unit: 1, or several if they are smaller than a byte. It
// is 1 for Int4, as MindSpore's dims count bytes.
uint64_t ElementsOfItem(DType dtype);

// The sizes of a tensor's dimensions; empty for a scalar. No size is negative.
using Shape = std::vector<int64_t>;

// The most dimensions that a tensor may have.
inline constexpr size_t kMaxDims = 64;

// Returns the number of elements, 1 for a scalar. Returns no value if a size is negative, or if a
// partial product does not fit, even if a later size is 0.
std::optional<uint64_t> ElementCount(const Shape& shape);

// Returns "[2, 3]".
std::string ToString(const Shape& shape);

// The elements with begin[d] <= index[d] < begin[d] + extent[d] in each dimension d of a tensor.
struct Box {
  std::vector<int64_t> begin;
  std::vector<int64_t> extent;

  // The box of a full tensor.
  static Box Whole(const Shape& shape);

  size_t dims() const { return begin.size(); }
  bool empty() const;
  friend bool operator==(const Box&, const Box&) = default;
};

// Returns the number of elements of a box. The ElementCount of its tensor has to fit.
uint64_t Volume(const Box& box);

// Returns the common elements of two boxes with equal dims(), or no value if there are none.
std::optional<Box> Intersect(const Box& a, const Box& b);

// Returns "[0:2, 4:8]".
std::string ToString(const Box& box);

enum class ArrayKind : uint8_t {
  kTensor,
  kText,       // a `str` entry: dtype kString, dims [0], content UTF-32LE
  kMapTensor,  // keys, values, status
  kPacked,  // a tensor of elements smaller than a byte, in rows that do not fill bytes: never cut
};

// Returns the sizes in elements of a StoredArray's or TensorInfo's shape, whose last dimension
// counts units. Empty for texts and MapTensors.
Shape LogicalShape(ArrayKind kind, DType dtype, const Shape& shape);

// A parameter of a checkpoint, however it is cut.
struct TensorInfo {
  std::string name;
  ArrayKind kind = ArrayKind::kTensor;
  DType dtype = DType::kFloat32;  // without meaning for a MapTensor
  Shape shape;                    // of the full tensor; empty for text entries and MapTensors
  uint64_t bytes = 0;  // of the full tensor; for a text or MapTensor, the bytes in its file
};

// One entry of a checkpoint file: its name, type and shape, and the places of its bytes. It is a
// view into its Checkpoint, which has to outlive it.
struct StoredArray {
  // A tensor (keys, values or status) in a Value of a MapTensor.
  struct MapTensorPart {
    std::string type;  // as written: a lower-case numpy name such as "int32"
    Shape shape;
    ByteRange content;

    friend bool operator==(const MapTensorPart&, const MapTensorPart&) = default;
  };

  std::string_view name;
  ArrayKind kind = ArrayKind::kTensor;
  DType dtype = DType::kFloat32;  // without meaning for a MapTensor
  const Shape& shape;  // as the file means it: a scalar's is empty; without meaning for a MapTensor
  uint64_t bytes = 0;  // content bytes in all
  std::span<const ByteRange> framed;  // the whole messages, key and length included, of each Value
  std::span<const ByteRange>
      content;  // the content of each Value, in file order; empty for a MapTensor
  std::span<const MapTensorPart> map_tensor;  // the parts of its Values one after the other
};

// A tensor of a file that cannot be read, such as a transposed one in a file of torch.save.
struct UnreadTensor {
  std::string name;
  std::string why;
};

// Returns whether the referenced values are equal.
bool operator==(const StoredArray& a, const StoredArray& b);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_TENSOR_H_
