#include "src/tensor/byte_box.h"

#include <algorithm>
#include <cassert>

#include "src/base/checked.h"

namespace reshard {
namespace {

int64_t Signed(uint64_t n) { return static_cast<int64_t>(n); }
uint64_t Unsigned(int64_t n) { return static_cast<uint64_t>(n); }

// Appends the boxes of bytes [begin, end) of the sub-box that `fixed` describes: dimensions before
// `dim` are fixed to one index, those from `dim` on are whole.
void AppendBoxes(const Box& fixed, size_t dim, uint64_t begin, uint64_t end,
                 std::vector<Box>& out) {
  if (begin == end) return;
  uint64_t inner = 1;  // bytes of one index of `dim`
  for (size_t d = dim + 1; d < fixed.dims(); ++d) inner *= Unsigned(fixed.extent[d]);
  const auto slab = [&](uint64_t first, uint64_t count) {
    Box box = fixed;
    box.begin[dim] += Signed(first);
    box.extent[dim] = Signed(count);
    return box;
  };
  const uint64_t first_whole = (begin + inner - 1) / inner;
  const uint64_t end_whole = end / inner;
  if (first_whole > end_whole) {  // inside one index
    AppendBoxes(slab(end_whole, 1), dim + 1, begin - end_whole * inner, end - end_whole * inner,
                out);
    return;
  }
  if (begin != first_whole * inner) {
    const uint64_t index = first_whole - 1;
    AppendBoxes(slab(index, 1), dim + 1, begin - index * inner, inner, out);
  }
  if (first_whole != end_whole) out.push_back(slab(first_whole, end_whole - first_whole));
  if (end != end_whole * inner) {
    AppendBoxes(slab(end_whole, 1), dim + 1, 0, end - end_whole * inner, out);
  }
}

}  // namespace

std::optional<uint64_t> TensorBytes(const Shape& shape, DType dtype) {
  int64_t bytes = Signed(ItemBytes(dtype));
  bool has_zero = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      has_zero = true;
      continue;
    }
    const auto product = CheckedMul(bytes, size);
    if (!product) return std::nullopt;
    bytes = *product;
  }
  return has_zero ? 0 : Unsigned(bytes);
}

Shape ToByteShape(const Shape& shape, DType dtype) {
  if (shape.empty()) return {Signed(ItemBytes(dtype))};
  Shape bytes = shape;
  bytes.back() *= Signed(ItemBytes(dtype));
  return bytes;
}

Box ToByteBox(const Box& box, DType dtype) {
  if (box.dims() == 0) return Box::Whole({Signed(ItemBytes(dtype))});
  Box bytes = box;
  bytes.begin.back() *= Signed(ItemBytes(dtype));
  bytes.extent.back() *= Signed(ItemBytes(dtype));
  return bytes;
}

uint64_t OffsetInBox(const Box& box, const std::vector<int64_t>& index) {
  assert(index.size() == box.dims());
  uint64_t offset = 0;
  for (size_t d = 0; d < box.dims(); ++d) {
    offset = offset * Unsigned(box.extent[d]) + Unsigned(index[d] - box.begin[d]);
  }
  return offset;
}

std::vector<Box> BoxesOfRange(const Box& box, ByteRange range) {
  assert(range.end() <= Volume(box));
  std::vector<Box> out;
  if (!box.empty()) AppendBoxes(box, 0, range.offset, range.end(), out);
  return out;
}

}  // namespace reshard
