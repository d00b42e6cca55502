// Boxes in bytes: a tensor's last dimension is counted in bytes, so that cuts inside an element
// have a box, too. Also the proof that boxes cover a box exactly once.
//
// A scalar becomes one dimension of its bytes. Pure functions.
#ifndef RESHARD_SRC_TENSOR_BYTE_BOX_H_
#define RESHARD_SRC_TENSOR_BYTE_BOX_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/tensor.h"

namespace reshard {

// Returns the bytes of a tensor. Returns no value if a size is negative, or if the product of the
// item's bytes and all nonzero sizes does not fit 63 bits. Zeros do not count, so strides fit, too,
// and the result does not depend on the order of the sizes (as in NumPy).
std::optional<uint64_t> TensorBytes(std::span<const int64_t> shape, uint64_t item_bytes);
std::optional<uint64_t> TensorBytes(const Shape& shape, DType dtype);

constexpr bool IsInteger(DType dtype) { return dtype <= DType::kUInt64; }
static_assert(DType::kUInt64 < DType::kFloat16 && DType::kInt8 == DType{});

// Return `shape` or `box` with the last dimension in bytes. TensorBytes of the tensor is known to
// fit.
Shape ToByteShape(Shape shape, DType dtype);
Box ToByteBox(Box box, DType dtype);

// A shape, or the begin or the extent of a box, with the last dimension in bytes, as ToByteShape
// and ToByteBox make it. It takes no memory on the heap, for uses with very many tensors.
class ByteDims {
 public:
  // Of at most kMaxDims numbers. A scalar, without numbers, becomes one dimension of `scalar`
  // bytes.
  ByteDims(std::span<const int64_t> numbers, DType dtype, int64_t scalar)
      : size_(std::max<size_t>(numbers.size(), 1)) {
    std::copy(numbers.begin(), numbers.end(), numbers_.begin());
    numbers_[size_ - 1] =
        numbers.empty() ? scalar : numbers.back() * static_cast<int64_t>(ItemBytes(dtype));
  }

  std::span<const int64_t> span() const { return {numbers_.data(), size_}; }

 private:
  size_t size_;
  std::array<int64_t, kMaxDims> numbers_;  // only the first size_ are ever set
};

// Returns the row-major offset of the element at `index` from the first element of `box`, both in
// bytes; `index` lies in the box.
uint64_t OffsetInBox(const Box& box, const std::vector<int64_t>& index);

// Returns disjoint boxes, in row-major order, that together hold exactly the bytes `range` of the
// row-major bytes of `box` (as when a tensor's content is cut into several Values). At most 2 *
// dims - 1 boxes.
std::vector<Box> BoxesOfRange(const Box& box, ByteRange range);

// The most steps for a proof about some boxes, such as comparisons of two. Boxes of a grid, and
// those that programs cut, take far fewer. Boxes that interlock may take more: their number
// squared.
constexpr uint64_t MostBoxSteps(size_t boxes) { return (uint64_t{1} << 20) + 1024 * boxes; }

// Returns true if the boxes `parts` are disjoint, lie in `whole` and together have its volume.
// Takes near-linear time for the boxes of a grid, in any order. Other boxes are allowed, too, but
// the result is false if the proof takes more than MostBoxSteps.
bool CoversExactly(const Box& whole, const std::vector<Box>& parts);

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_BYTE_BOX_H_
