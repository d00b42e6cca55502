#include "src/digest/digest128.h"

#include <fmt/format.h>

namespace reshard {

std::string ToHex(const Digest128& digest) {
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

}  // namespace reshard
