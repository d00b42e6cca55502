// InferStrategy: the strategy of a sharded checkpoint that has lost it, from a checkpoint of full
// tensors.
//
// May run in several threads at once; each call uses its own threads and state. Prints nothing.
//
// Implemented in src/api.
#ifndef RESHARD_STRATEGY_INFERENCE_H_
#define RESHARD_STRATEGY_INFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/conversion_options.h"
#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

struct InferStrategyOptions {
  std::string source;     // a folder with rank_N/*.ckpt of all ranks
  std::string reference;  // a .ckpt file of full tensors
  std::string output;     // JSON where the name ends in .json, else protobuf
  bool force = false;     // replace `output`
  RunOptions run;
};

struct InferStrategyReport {
  int64_t stages = 1;
  int64_t devices_per_stage = 1;
  uint64_t layouts = 0;               // in all stages
  uint64_t bytes = 0;                 // of the file that was written
  std::vector<std::string> warnings;  // parameters left out, and choices that bytes left open
};

// Writes a strategy under which `source` holds what its ranks hold: cuts from the shapes of shards
// and of full tensors; which rank holds which part from equal bytes and, where the reference holds
// the same values, from those. A pipeline's stages are told by the names in the files. Reads every
// shard once; memory is bounded. Errors: kMismatch, listing parameters, where layouts that would
// give different results remain or none fits; kAlreadyExists; those of opening checkpoints;
// kCancelled.
Result<InferStrategyReport> InferStrategy(const InferStrategyOptions& options);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_STRATEGY_INFERENCE_H_
