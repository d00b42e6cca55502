// Encodes the layouts of a sample as strategy files (src/mindspore/SPEC.md).
//
// Pure functions.
#ifndef RESHARD_TOOLS_GEN_SAMPLE_STRATEGY_H_
#define RESHARD_TOOLS_GEN_SAMPLE_STRATEGY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gen/sample_model.h"

namespace reshard {

// Return the strategy file of one stage, names without stage prefix, as a rank of that stage saves
// it while it trains: protobuf, or JSON as Python's json.dumps writes it.
std::string EncodeStrategy(const std::vector<SampleParameter>& parameters, int64_t stage);
std::string EncodeStrategyJson(const std::vector<SampleParameter>& parameters, int64_t stage);

}  // namespace reshard

#endif  // RESHARD_TOOLS_GEN_SAMPLE_STRATEGY_H_
