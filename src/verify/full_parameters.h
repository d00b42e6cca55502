// The parameters of a checkpoint in no layout: what they are, and their logical digests.
//
// Checkpoints that hold the same parameters give the same digests, however they are cut.
// Thread-safe as their arguments are.
#ifndef RESHARD_SRC_VERIFY_FULL_PARAMETERS_H_
#define RESHARD_SRC_VERIFY_FULL_PARAMETERS_H_

#include <vector>

#include "reshard/status.h"
#include "src/digest/digest128.h"
#include "src/io/source_files.h"
#include "src/mindspore/full_parameter.h"
#include "src/mindspore/source_shards.h"
#include "src/plan/plan_notes.h"
#include "src/verify/shared_work.h"

namespace reshard {

// Returns all parameters of a checkpoint, in the order of the file that a conversion to full
// tensors would write; the rule of `shards` has no target strategy. Adds what there is to say to
// `notes`. Errors: as Planner::PlanTarget.
Result<std::vector<FullParameter>> ListFullParameters(const SourceShards& shards, PlanNotes& notes);

// Returns the logical digest of each of `parameters`, which are of `shards`.
// Errors: kMismatch when no file holds a shard; those of SourceFiles; kCancelled.
Result<std::vector<Digest128>> DigestFullParameters(SourceFiles& files, const SourceShards& shards,
                                                    const std::vector<FullParameter>& parameters,
                                                    const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_FULL_PARAMETERS_H_
