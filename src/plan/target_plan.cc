#include "src/plan/target_plan.h"

namespace reshard {

ByteRange TargetRange(const Segment& segment) {
  if (const auto* literal = std::get_if<Literal>(&segment)) {
    return {literal->offset, literal->bytes.size()};
  }
  return std::get<Content>(segment).target;
}

}  // namespace reshard
