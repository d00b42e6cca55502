// WorkerShare: which of several processes, perhaps on several machines, does a part of a
// conversion.
//
// Implemented in src/job.
#ifndef RESHARD_WORKER_SHARE_H_
#define RESHARD_WORKER_SHARE_H_

#include <cstdint>

namespace reshard {

struct WorkerShare {
  uint64_t index = 0;  // from 0 to count - 1
  uint64_t count = 1;

  friend bool operator==(const WorkerShare&, const WorkerShare&) = default;
};

// The most workers of a conversion.
inline constexpr uint64_t kMaxWorkers = 65536;

// Whether there can be such a worker.
constexpr bool IsWorkerShare(const WorkerShare& shard) {
  return shard.count > 0 && shard.count <= kMaxWorkers && shard.index < shard.count;
}

}  // namespace reshard

#endif  // RESHARD_WORKER_SHARE_H_
