// Shard: which of several processes, perhaps on several machines, does a part of a conversion.
//
// Implemented in src/exec.
#ifndef RESHARD_SHARD_H_
#define RESHARD_SHARD_H_

#include <cstdint>

namespace reshard {

struct Shard {
  uint64_t index = 0;  // from 0 to count - 1
  uint64_t count = 1;

  friend bool operator==(const Shard&, const Shard&) = default;
};

// The most shards of a conversion.
inline constexpr uint64_t kMaxShards = 65536;

}  // namespace reshard

#endif  // RESHARD_SHARD_H_
