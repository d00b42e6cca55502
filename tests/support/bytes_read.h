// BytesRead: what this process has read with system calls so far.
#ifndef RESHARD_TESTS_SUPPORT_BYTES_READ_H_
#define RESHARD_TESTS_SUPPORT_BYTES_READ_H_

#include <cstdint>

namespace reshard {

// Returns bytes, those read through maps not counted (rchar of /proc/self/io).
uint64_t BytesRead();

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_BYTES_READ_H_
