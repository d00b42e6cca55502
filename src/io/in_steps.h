// InSteps: many bytes dealt with a little at a time, until somebody asks to stop.
//
// No state; any thread.
#ifndef RESHARD_SRC_IO_IN_STEPS_H_
#define RESHARD_SRC_IO_IN_STEPS_H_

#include <cstdint>
#include <functional>
#include <stop_token>

#include "reshard/byte_range.h"
#include "reshard/status.h"

namespace reshard {

// Calls step(part) for the parts into which the multiples of `step_bytes` cut `piece`, in order,
// until one fails or `stop` is requested, and reports their bytes to `progress`.
Status InSteps(ByteRange piece, uint64_t step_bytes, const std::stop_token& stop,
               const std::function<void(uint64_t)>& progress,
               const std::function<Status(ByteRange)>& step);

}  // namespace reshard

#endif  // RESHARD_SRC_IO_IN_STEPS_H_
