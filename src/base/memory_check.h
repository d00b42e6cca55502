// MemoryCheck: asks, while memory is being taken, whether that may go on.
#ifndef RESHARD_SRC_BASE_MEMORY_CHECK_H_
#define RESHARD_SRC_BASE_MEMORY_CHECK_H_

#include <cstdint>
#include <functional>

#include "reshard/status.h"

namespace reshard {

// Fails with kResourceExhausted if the held bytes and `more` bytes exceed the limit. Costs some
// microseconds. Any thread may call it. An empty one means no limit.
using MemoryCheck = std::function<Status(uint64_t more)>;

// Bytes that are too few to ask for. A loop that keeps as many each time has to ask now and then.
inline constexpr uint64_t kFewBytes = uint64_t{64} << 10;

// `more`: the bytes that come next; 0: many small steps were made.
inline Status CheckMemory(const MemoryCheck& check, uint64_t more = 0) {
  const bool is_asked = check && (more == 0 || more >= kFewBytes);
  return is_asked ? check(more) : Status();
}

// Code that takes some hundred bytes each time makes this many steps between two checks.
inline constexpr uint64_t kMemoryCheckInterval = 1024;

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_MEMORY_CHECK_H_
