// Boxes in bytes: a tensor's last dimension counted in bytes, so that cuts that fall inside an
// element have a box too; and the proof that boxes cover a box exactly once.
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

// Returns the bytes of a tensor, or nothing when a size is negative or the product of the item's
// bytes and all sizes but those of 0 does not fit 63 bits: wherever a 0 stands, so that strides fit
// too, and files with one shape are read or refused whatever they are (as NumPy does).
std::optional<uint64_t> TensorBytes(std::span<const int64_t> shape, uint64_t item_bytes);
std::optional<uint64_t> TensorBytes(const Shape& shape, DType dtype);

// Return `shape` or `box` with the last dimension in bytes. TensorBytes of the tensor is known to
// fit.
Shape ToByteShape(Shape shape, DType dtype);
Box ToByteBox(Box box, DType dtype);

// A shape, or the begin or the extent of a box, with the last dimension in bytes, as ToByteShape
// and ToByteBox make it, but in place: for what is asked of each of very many tensors.
class ByteDims {
 public:
  // Of at most kMaxDims numbers. What a scalar has none of becomes `scalar`, in bytes.
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

// Returns true when the boxes `parts` are disjoint, lie in `whole` and together have its volume.
// Near-linear for the boxes of a grid, whatever their order; the parts need not come from one.
bool CoversExactly(const Box& whole, const std::vector<Box>& parts);

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_BYTE_BOX_H_
