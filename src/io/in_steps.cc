#include "src/io/in_steps.h"

#include <algorithm>

#include "src/base/status_macros.h"

namespace reshard {

Status InSteps(ByteRange piece, uint64_t step_bytes, const std::stop_token& stop,
               const std::function<void(uint64_t)>& progress,
               const std::function<Status(ByteRange)>& step) {
  for (uint64_t offset = piece.offset; offset < piece.end();) {
    if (stop.stop_requested()) return CancelledError("stopped on request");
    const uint64_t length = std::min(step_bytes - offset % step_bytes, piece.end() - offset);
    RESHARD_RETURN_IF_ERROR(step({offset, length}));
    if (progress) progress(length);
    offset += length;
  }
  return {};
}

}  // namespace reshard
