// SourceTotals: how many parameters a source has in all, whatever a run writes of it.
//
// From headers: in ordinary checkpoints the file of one rank of each stage tells. Thread-safe as
// Source is.
#ifndef RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_
#define RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/parameters.h"
#include "reshard/status.h"
#include "src/mindspore/conversion_rule.h"
#include "src/plan/parameter_choice.h"
#include "src/source/source.h"

namespace reshard {

// What may be opened of files that nobody needs otherwise.
struct TotalsLimits {
  size_t files = 0;
  size_t headers = 0;  // of parameters, in all of them
};

// Weights that are in the source once more, under the names that a prefix makes of theirs.
struct RepeatedWeights {
  std::string prefix;  // "ref_model."
  uint64_t tensors = 0;
  uint64_t elements = 0;  // of the weights in them
};

struct SourceTotals {
  ParameterTotals all;
  ParameterTotals chosen;         // those that the choice takes
  uint64_t expected_weights = 0;  // those that it does not exclude
  // Of those, by prefix. A single tensor counts only if it is half of the other weights.
  std::vector<RepeatedWeights> repeated;
};

// Counts them; takes off `limits` what was opened. A parameter of several stages counts as its
// lowest one has it. Errors: kInvalidArgument where the files that are there do not tell, and says
// why; kCancelled.
Result<SourceTotals> CountParameters(const Source& source, const ConversionRule& rule,
                                     const ParameterChoice& choice, TotalsLimits& limits,
                                     const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_
