// What this process has read so far.
#ifndef RESHARD_TESTS_SUPPORT_BYTES_READ_H_
#define RESHARD_TESTS_SUPPORT_BYTES_READ_H_

#include <cstdint>

namespace reshard {

// Returns bytes, those read through maps not counted (rchar of /proc/self/io).
uint64_t BytesRead();

// Returns bytes that disks were asked for, read-ahead and pages of programs included (read_bytes).
uint64_t BytesFromDisk();

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_BYTES_READ_H_
