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

inline Status CheckMemory(const MemoryCheck& check, uint64_t more = 0) {
  return check ? check(more) : Status();
}

// Code that takes some hundred bytes each time makes this many steps between two checks.
inline constexpr uint64_t kMemoryCheckInterval = 1024;

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_MEMORY_CHECK_H_
