// CheckReplicas: how closely a conversion looks, before it writes anything, whether the source
// strategy is the one that the source was saved with.
//
// Plain values; no locking.
//
// Implemented in src/verify.
#ifndef RESHARD_CHECK_REPLICAS_H_
#define RESHARD_CHECK_REPLICAS_H_

#include <cstdint>

namespace reshard {

enum class CheckReplicas {
  kNone,    // no content is compared, and one file may stand for several ranks
  kSample,  // some KiB of some parameters, within a bound
  kAll,     // every byte of every shard that several ranks hold
};

// What a sample read.
struct ReplicaSample {
  uint64_t parameters = 0;    // sampled, in each stage
  uint64_t comparisons = 0;   // of a rank's part of a parameter with a replica of it
  uint64_t files = 0;         // sampled
  uint64_t files_opened = 0;  // of these, only for the sample
  uint64_t reads = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};

}  // namespace reshard

#endif  // RESHARD_CHECK_REPLICAS_H_
