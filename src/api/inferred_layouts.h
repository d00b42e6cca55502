// Layouts of one stage, chosen by the evidence of its shards.
#ifndef RESHARD_SRC_API_INFERRED_LAYOUTS_H_
#define RESHARD_SRC_API_INFERRED_LAYOUTS_H_

#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/strategy.h"
#include "src/verify/shard_evidence.h"

namespace reshard {

// Returns the layouts of `parameters`, those of the optimizer's copies as their parameters' where
// these explain them. Adds what was left out or is open to `warnings`.
// Errors: kMismatch, listing parameters, where several layouts give different results, or none
// fits.
Result<std::vector<NamedLayout>> InferLayouts(const std::vector<StageParameter>& parameters,
                                              std::vector<std::string>& warnings);

}  // namespace reshard

#endif  // RESHARD_SRC_API_INFERRED_LAYOUTS_H_
