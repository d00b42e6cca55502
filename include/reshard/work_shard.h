// WorkShard: which of several processes, perhaps on several machines, does a part of a conversion.
//
// Implemented in src/job.
#ifndef RESHARD_WORK_SHARD_H_
#define RESHARD_WORK_SHARD_H_

#include <cstdint>

namespace reshard {

struct WorkShard {
  uint64_t index = 0;  // from 0 to count - 1
  uint64_t count = 1;

  friend bool operator==(const WorkShard&, const WorkShard&) = default;
};

// The most shards of a conversion.
inline constexpr uint64_t kMaxShards = 65536;

// Whether there can be such a shard.
constexpr bool IsShard(const WorkShard& shard) {
  return shard.count > 0 && shard.count <= kMaxShards && shard.index < shard.count;
}

}  // namespace reshard

#endif  // RESHARD_WORK_SHARD_H_
