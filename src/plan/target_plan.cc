#include "src/plan/target_plan.h"

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

}  // namespace

ByteRange TargetRange(const Segment& segment) {
  if (const auto* literal = std::get_if<Literal>(&segment)) {
    return {literal->offset, literal->bytes.size()};
  }
  return std::get<Content>(segment).target;
}

PlacedBox PlacedTarget(const Content& content) {
  return {ToByteBox(content.geometry.target_box(), content.dtype),
          static_cast<int64_t>(content.target.offset) - static_cast<int64_t>(content.box_offset)};
}

size_t MemoryBytes(const Segment& segment) {
  const auto* const literal = std::get_if<Literal>(&segment);
  return sizeof(Segment) +
         (literal != nullptr ? HeapBytes(literal->bytes) : HeapBytes(std::get<Content>(segment)));
}

}  // namespace reshard
