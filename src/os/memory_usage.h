// How much memory there is, and how much this process takes. Any thread.
#ifndef RESHARD_SRC_OS_MEMORY_USAGE_H_
#define RESHARD_SRC_OS_MEMORY_USAGE_H_

#include <atomic>
#include <cstdint>

namespace reshard {

// Returns the bytes of memory that this process may have in all: those of the host, fewer where a
// control group allows fewer.
uint64_t MemoryOfHost();

// Returns the anonymous bytes that this process has in memory now; 0 when that cannot be told.
uint64_t AnonymousMemory();

// The most anonymous bytes at any time that somebody looked.
class AnonymousPeak {
 public:
  // Returns the anonymous bytes that there are now.
  uint64_t Look();
  uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<uint64_t> bytes_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_MEMORY_USAGE_H_
