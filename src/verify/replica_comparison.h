// Replicas: ranks that by their layouts hold the same shard of a parameter, compared.
//
// Parameters in no strategy are each rank's own and never compared.
#ifndef RESHARD_SRC_VERIFY_REPLICA_COMPARISON_H_
#define RESHARD_SRC_VERIFY_REPLICA_COMPARISON_H_

#include <cstdint>
#include <span>

#include "reshard/differences.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/mindspore/source_shards.h"
#include "src/plan/parameter_choice.h"
#include "src/verify/shared_work.h"

namespace reshard {

// Compares the replicas of the parameters of `choice` in the files of these source stages; without
// a source strategy there are none. What has replicas is read once, in file order, to digests, of
// which one is kept for each shard; shards whose digests differ are then read again and compared
// byte by byte. Work is counted in bytes of the files, whether or not they are read.
// Errors: kMismatch where a layout does not fit; those of SourceFiles; kCancelled.
Result<ReplicaReport> CompareReplicas(SourceFiles& files, const SourceShards& shards,
                                      const ParameterChoice& choice,
                                      std::span<const int64_t> stages, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_REPLICA_COMPARISON_H_
