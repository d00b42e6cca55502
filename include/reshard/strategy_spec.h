// MakeStrategy: a strategy from a specification, without compiling a network.
//
// No state; any number of threads may call it. Prints nothing.
//
// Implemented in src/mindspore.
#ifndef RESHARD_STRATEGY_SPEC_H_
#define RESHARD_STRATEGY_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

struct MakeStrategyOptions {
  std::string spec;        // a JSON file (docs/strategies.md)
  std::string output;      // JSON where the name ends in .json, else protobuf
  std::string checkpoint;  // a file of full tensors that patterns match; empty: the spec has names
  bool force = false;      // replace `output`
};

struct MakeStrategyReport {
  int64_t stages = 1;
  int64_t devices_per_stage = 1;
  uint64_t layouts = 0;               // in all stages
  uint64_t bytes = 0;                 // of the file that was written
  std::vector<std::string> warnings;  // entries that match nothing
  std::vector<std::string> notes;     // parameters without a layout
};

// Writes the strategy that a specification describes: of one stage, or of a pipeline, merged as
// MergeStrategies does. `output` appears whole or not at all. Errors: kNotFound; kCorrupt for a
// specification that does not follow its schema; kInvalidArgument for patterns where no checkpoint
// is given; kMismatch where parameters cannot be cut as it says, and where all names of one stage
// would be read as those of a pipeline's; kAlreadyExists; those of opening a checkpoint.
Result<MakeStrategyReport> MakeStrategy(const MakeStrategyOptions& options);

}  // namespace reshard

#endif  // RESHARD_STRATEGY_SPEC_H_
