// What a checkpoint holds: its parameters in no layout and their logical digests, or what every
// rank has of them, each file read once.
//
// Checkpoints that hold the same parameters give the same digests, however they are cut.
// Thread-safe as the arguments are.
#ifndef RESHARD_SRC_VERIFY_CHECKPOINT_CONTENTS_H_
#define RESHARD_SRC_VERIFY_CHECKPOINT_CONTENTS_H_

#include <cstdint>
#include <memory>
#include <string>
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

// Returns all parameters of a checkpoint, in the order of the file that a conversion to full
// tensors would write; the rule of `placement` has no target strategy. The files are indexed by
// `work.workers` threads. Adds what there is to say to `findings`. Errors: as
// MindSporeTarget::Select.
Result<std::vector<SourceTensor>> ListTensors(const Source& source, const ConversionRule& rule,
                                              const SharedWork& work, PlanFindings& findings);

// Returns the logical digest of each of `tensors`, which are of `source`.
// Errors: kMismatch when no file holds a shard; those of SourceFiles; kCancelled.
Result<std::vector<Digest128>> DigestTensors(const Source& source,
                                             const std::vector<SourceTensor>& tensors,
                                             const SharedWork& work);

// A whole parameter, as some ranks hold it.
struct HeldValue {
  ArrayKind kind = ArrayKind::kTensor;
  DType dtype = DType::kFloat32;  // without meaning for a MapTensor
  Shape shape;                    // of the full tensor; empty for text entries and MapTensors
  uint64_t bytes = 0;
  Digest128 digest;
  std::vector<int64_t> ranks;  // ascending; none where it is the only value

  // Orders values; those that are the same are equal, whichever ranks hold them.
  struct Less {
    bool operator()(const HeldValue& a, const HeldValue& b) const;
  };
};

struct CheckpointContents {
  // Of each parameter: where a layout cuts it one, of the lowest ranks that hold its parts; else
  // the values that ranks hold, by their lowest rank.
  std::vector<std::vector<HeldValue>> values;
  // Ranks that hold the same shard, and what higher stages hold of a parameter, against the lowest.
  ReplicaReport replicas;
  // Accumulated gradients whose replicas differ, as they may: each rank has its own.
  std::vector<std::string> own_gradients;
  uint64_t bytes = 0;  // that were read
};

// Reads what a checkpoint holds in the files of all its ranks.
class ContentsReader {
 public:
  // Of the parameters of `choice`. `strategy` is the source's, null for none. It and `source`
  // must outlive this.
  ContentsReader(const Source& source, const Strategy* strategy, const ParameterChoice& choice);
  ~ContentsReader();
  ContentsReader(const ContentsReader&) = delete;
  ContentsReader& operator=(const ContentsReader&) = delete;

  // Before anything else is done with the source: indexes its files, `indexers` at a time, and
  // reads them at once, as long as they are small and headers lie so close that indexing has just
  // brought all of them in. So the disk is not at rest meanwhile, and nothing is read twice. Leaves
  // the other files to Read, and those that cannot be read; files that are not mapped are all
  // indexed. `kept` is how many bytes of files may wait in memory to be read.
  void ReadAsIndexed(uint64_t kept, size_t indexers, const SharedWork& work);

  // Reads the rest of all of `parameters`, which are those that the choice takes. Once. Work is
  // counted in bytes of the files. Errors: kMismatch when no file holds a shard, or where a layout
  // does not fit; those of SourceFiles; kCancelled.
  Result<CheckpointContents> Read(const std::vector<SourceTensor>& parameters,
                                  const SharedWork& work);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_CHECKPOINT_CONTENTS_H_
