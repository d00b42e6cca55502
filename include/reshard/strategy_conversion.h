// ConvertStrategyFile: a strategy from protobuf to JSON and back.
//
// No state; any number of threads may call it.
//
// Implemented in src/mindspore.
#ifndef RESHARD_STRATEGY_CONVERSION_H_
#define RESHARD_STRATEGY_CONVERSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

struct StrategyConversionReport {
  uint64_t layouts = 0;               // of parameters, those that a file lists twice included
  uint64_t bytes = 0;                 // of the file that was written
  std::vector<std::string> warnings;  // what the other encoding has no place for
  std::vector<std::string> notes;     // files of a folder that were skipped, and why
};

// Writes the strategy `input`, a file or a folder of stage files, which are merged, to the file
// `output`: in JSON where its name ends in .json, else in protobuf, which is how MindSpore tells
// them apart. What both can hold comes over unchanged (src/mindspore/SPEC.md); of a
// file that is in this form already, every byte. `output` appears whole or not at all. Errors: as
// ReadStrategy, and kAlreadyExists when `output` exists and not `force`.
Result<StrategyConversionReport> ConvertStrategyFile(const std::string& input,
                                                     const std::string& output, bool force);

}  // namespace reshard

#endif  // RESHARD_STRATEGY_CONVERSION_H_
