#include "src/plan/target_plan.h"

#include <span>

#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// What the allocator takes beside each allocation.
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

ByteDims FullBytes(const Content& content) {
  return {content.geometry.full_shape(), content.dtype,
          static_cast<int64_t>(ItemBytes(content.dtype))};
}

}  // namespace

ByteRange TargetRange(const Segment& segment) {
  if (const auto* literal = std::get_if<Literal>(&segment)) {
    return {literal->offset, literal->bytes.size()};
  }
  return std::get<Content>(segment).target;
}

LogicalMap SourceMapOf(const Content& content, size_t copy) {
  const ByteDims full = FullBytes(content);
  return {content.geometry.shard(copy), full.span()};
}

LogicalMap TargetMapOf(const Content& content) {
  const ByteDims full = FullBytes(content);
  const ByteDims begin(content.geometry.target_begin(), content.dtype, 0);
  const ByteDims extent(content.geometry.target_extent(), content.dtype,
                        static_cast<int64_t>(ItemBytes(content.dtype)));
  const auto offset =
      static_cast<int64_t>(content.target.offset) - static_cast<int64_t>(content.box_offset);
  return {PlacedBoxView{begin.span(), extent.span(), offset}, full.span()};
}

size_t MemoryBytes(const Segment& segment) {
  const auto* const literal = std::get_if<Literal>(&segment);
  return sizeof(Segment) +
         (literal != nullptr ? HeapBytes(literal->bytes) : HeapBytes(std::get<Content>(segment)));
}

}  // namespace reshard
