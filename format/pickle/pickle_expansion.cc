#include "format/pickle/pickle_expansion.h"

#include <fmt/format.h>

namespace reshard {

Status PickleExpansion::Take(uint64_t bytes) {
  if (bytes <= left_) {
    left_ -= bytes;
    return {};
  }
  return ResourceExhaustedError(
      fmt::format("it refers to values so often that they make more than {} times its {} bytes",
                  kForEach, pickle_bytes_));
}

}  // namespace reshard
