#include "src/plan/target_plan.h"

#include <span>

#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// The allocator's own bytes for each allocation.
constexpr size_t kAllocation = 2 * sizeof(void*);

template <typename T>
size_t HeapBytes(const std::vector<T>& items) {
  return items.capacity() == 0 ? 0 : items.capacity() * sizeof(T) + kAllocation;
}

size_t HeapBytes(const std::string& text) {
  return text.capacity() < sizeof(std::string) / 2 ? 0 : text.capacity() + kAllocation;
}

size_t HeapBytes(const Content& content) {
  size_t bytes = HeapBytes(content.copies);
  if (content.geometry.capacity() != 0) {
    bytes += content.geometry.capacity() * sizeof(int64_t) + kAllocation;
  }
  for (const BlockCopy& copy : content.copies) bytes += HeapBytes(copy.dims);
  return bytes;
}

ByteDims FullBytes(const Content& content, DType dtype) {
  return {content.geometry.full_shape(), dtype, static_cast<int64_t>(ItemBytes(dtype))};
}

// For bytes of `dtype`: offset `at` has byte `box_offset` of the parameter's box.
LogicalMap LogicalMapOf(const Content& content, DType dtype, uint64_t at, uint64_t box_offset) {
  const ByteDims full = FullBytes(content, dtype);
  const ByteDims begin(content.geometry.target_begin(), dtype, 0);
  const ByteDims extent(content.geometry.target_extent(), dtype,
                        static_cast<int64_t>(ItemBytes(dtype)));
  const auto offset = static_cast<int64_t>(at) - static_cast<int64_t>(box_offset);
  return {PlacedBoxView{begin.span(), extent.span(), offset}, full.span()};
}

}  // namespace

ByteRange Content::ImageRange(ByteRange range) const {
  if (!is_cast() || range.length == 0) return range;
  const uint64_t item = ItemBytes(target_dtype());
  const uint64_t first = box_offset / item;
  const uint64_t begin = (range.offset - target.offset + box_offset) / item;
  const uint64_t end = (range.end() - target.offset + box_offset + item - 1) / item;
  return {target.offset + (begin - first) * ItemBytes(dtype), (end - begin) * ItemBytes(dtype)};
}

ByteRange TargetRange(const Segment& segment) {
  if (const auto* literal = std::get_if<Literal>(&segment)) {
    return {literal->offset, literal->bytes.size()};
  }
  return std::get<Content>(segment).target;
}

LogicalMap SourceMapOf(const Content& content, size_t copy) {
  const ByteDims full = FullBytes(content, content.dtype);
  return {content.geometry.shard(copy), full.span()};
}

LogicalMap TargetMapOf(const Content& content) {
  return LogicalMapOf(content, content.target_dtype(), content.target.offset, content.box_offset);
}

LogicalMap ImageMapOf(const Content& content) {
  const uint64_t first = content.box_offset / ItemBytes(content.target_dtype());
  return LogicalMapOf(content, content.dtype, content.target.offset,
                      first * ItemBytes(content.dtype));
}

size_t MemoryBytes(const Segment& segment) {
  const auto* const literal = std::get_if<Literal>(&segment);
  return sizeof(Segment) +
         (literal != nullptr ? HeapBytes(literal->bytes) : HeapBytes(std::get<Content>(segment)));
}

}  // namespace reshard
