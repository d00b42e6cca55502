// MemoryCheck: asks, while memory is being taken, whether that may go on.
#ifndef RESHARD_SRC_BASE_MEMORY_CHECK_H_
#define RESHARD_SRC_BASE_MEMORY_CHECK_H_

#include <cstdint>
#include <functional>

#include "reshard/status.h"

namespace reshard {

// Fails with kResourceExhausted when what is held, and `more` bytes, are more than may be. Costs
// some microseconds. Called by any thread; an empty one asks nobody.
using MemoryCheck = std::function<Status(uint64_t more)>;

inline Status CheckMemory(const MemoryCheck& check, uint64_t more = 0) {
  return check ? check(more) : Status();
}

// Whoever takes some hundred bytes each time asks once in so many times.
inline constexpr uint64_t kMemoryCheckInterval = 1024;

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_MEMORY_CHECK_H_
