// Tells apart the shards that the ranks of a stage hold of each parameter, by digests, and compares
// them with the parts of a reference.
#ifndef RESHARD_SRC_VERIFY_SHARD_EVIDENCE_H_
#define RESHARD_SRC_VERIFY_SHARD_EVIDENCE_H_

#include <span>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/mindspore/layout_inference.h"
#include "src/plan/make_copies.h"
#include "src/source/table_cache.h"

namespace reshard {

struct StageParameter {
  std::string name;
  Shape full_shape;
  Shape shard_shape;              // on the first rank; the others have to agree
  const SourceTensor* reference;  // null: the reference does not have it
  ShardEvidence evidence;         // cuts are known
};

// Fills in the evidence of `parameters`. Their shards are in the files of the ranks `stage` of
// `source`, in which each file stands alone. Reads each shard once, and the tensors of `reference`
// that are cut. `reference` is a checkpoint of full tensors. Work is counted in bytes. Errors:
// kMismatch if a rank lacks a parameter, or has another dtype or shape; from opening files;
// kCancelled.
Status CollectEvidence(const Source& source, RankRange stage, const Source& reference,
                       std::vector<StageParameter>& parameters, const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_SHARD_EVIDENCE_H_
