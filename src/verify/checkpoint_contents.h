// The contents of a checkpoint, each file read once: its full parameters and their logical digests,
// or the values that every rank has.
//
// Checkpoints with the same parameters give the same digests, however they are cut. As thread-safe
// as the arguments.
#ifndef RESHARD_SRC_VERIFY_CHECKPOINT_CONTENTS_H_
#define RESHARD_SRC_VERIFY_CHECKPOINT_CONTENTS_H_

#include <cstdint>
#include <vector>

#include "reshard/compare.h"
#include "reshard/status.h"
#include "reshard/strategy.h"
#include "reshard/tensor.h"
#include "src/digest/digest128.h"
#include "src/io/shared_work.h"
#include "src/mindspore/conversion_rule.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/source/source.h"

namespace reshard {

// Returns all parameters of a checkpoint, in the order of a file with full tensors that a
// conversion would write. The rule of `placement` has no target strategy. `work.workers` threads
// index the files. Adds warnings and notes to `findings`. Errors: as MindSporeTarget::Select.
Result<std::vector<SourceTensor>> ListTensors(const Source& source, const ConversionRule& rule,
                                              const SharedWork& work, PlanFindings& findings);

// A whole parameter, as some ranks hold it.
struct HeldValue : TensorInfo {
  Digest128 digest;
  std::vector<int64_t> ranks;  // ascending; empty if it is the only value

  // Orders values. Equal values compare as equal, for any names and ranks.
  struct Less {
    bool operator()(const HeldValue& a, const HeldValue& b) const;
  };
};

struct CheckpointContents {
  // The values of each parameter. If a layout cuts it: one value, from the lowest ranks that hold
  // its parts. Otherwise: the values that ranks hold, by their lowest rank.
  std::vector<std::vector<HeldValue>> values;
  // Compares ranks that hold the same shard, and parameters of higher stages with the lowest stage.
  ReplicaReport replicas;
  uint64_t bytes = 0;  // that were read
};

// Reads the files of all ranks of a checkpoint, or one replica of each shard: then there is one
// value of each parameter, and `replicas` is empty. `parameters` are the parameters that `choice`
// takes, and `strategy` is the source's, null for none. Work is counted in bytes of the files, or
// of the parameters. Errors: kMismatch if no file holds a shard, or if a layout does not fit; as
// SourceFiles; kCancelled.
Result<CheckpointContents> ReadContents(const Source& source, const Strategy* strategy,
                                        const ParameterChoice& choice,
                                        const std::vector<SourceTensor>& parameters,
                                        bool one_replica, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_CHECKPOINT_CONTENTS_H_
