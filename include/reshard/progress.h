// Progress: how far a call is that moves or reads many bytes.
//
// A plain value. A callback that takes one is called from the call's threads, one call at a time;
// it must not throw: there is nobody to catch it, and the process would end.
//
// Implemented in src/convert (header only).
#ifndef RESHARD_PROGRESS_H_
#define RESHARD_PROGRESS_H_

#include <cstdint>

namespace reshard {

// Bytes dealt with, and in all.
struct Progress {
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
};

}  // namespace reshard

#endif  // RESHARD_PROGRESS_H_
