#include "src/plan/target_plan.h"

#include "src/tensor/byte_box.h"

namespace reshard {

ByteRange TargetRange(const Segment& segment) {
  if (const auto* literal = std::get_if<Literal>(&segment)) {
    return {literal->offset, literal->bytes.size()};
  }
  return std::get<Content>(segment).target;
}

PlacedBox PlacedTarget(const Content& content) {
  return {ToByteBox(content.target_box, content.dtype),
          static_cast<int64_t>(content.target.offset) - static_cast<int64_t>(content.box_offset)};
}

}  // namespace reshard
