// Compares the replicas of a source that lists the parts of its tensors: arrays with equal boxes.
#ifndef RESHARD_SRC_VERIFY_LISTED_REPLICAS_H_
#define RESHARD_SRC_VERIFY_LISTED_REPLICAS_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "reshard/compare.h"
#include "reshard/status.h"
#include "src/io/shared_work.h"
#include "src/plan/parameter_choice.h"
#include "src/source/source.h"

namespace reshard {

// Returns the bytes that CompareListedReplicas counts; 0 if `source` does not list its tensors.
uint64_t ListedReplicaBytes(const Source& source);

// Compares the replicas of each part, in the files that are there, byte by byte with the one of the
// lowest rank. Work is counted in bytes, whether or not they are read. Errors: as SourceFiles and
// TableCache; kCancelled.
Result<ReplicaReport> CompareListedReplicas(const Source& source, const ParameterChoice& choice,
                                            const SharedWork& work);

// As above, for the first bytes of some parts: as many replicas as `most` reads allow, of parts
// that are spread over all. Small ones are compared whole.
Result<ReplicaReport> SampleListedReplicas(const Source& source, const ParameterChoice& choice,
                                           size_t most, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_LISTED_REPLICAS_H_
