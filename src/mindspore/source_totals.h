// SourceTotals: the number of parameters of a whole source, for any part that a run writes.
//
// From headers: in ordinary checkpoints the file of a single rank in each stage is enough. As
// thread-safe as Source.
#ifndef RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_
#define RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/findings.h"
#include "reshard/status.h"
#include "src/mindspore/conversion_rule.h"
#include "src/plan/parameter_choice.h"
#include "src/source/source.h"

namespace reshard {

// The limits for opening files that only this count needs.
struct TotalsLimits {
  size_t files = 0;
  size_t headers = 0;  // of parameters, in all these files
};

// Weights that are in the source once more, under the names that a prefix makes of theirs.
struct RepeatedWeights {
  std::string prefix;  // "ref_model."
  uint64_t tensors = 0;
  uint64_t elements = 0;  // of the weights in them
};

struct SourceTotals {
  Findings::Totals all;
  Findings::Totals chosen;        // the part that the choice takes
  uint64_t expected_weights = 0;  // without the parameters that the choice excludes
  // The repeated weights, by prefix. A single tensor counts only if it is half of the other
  // weights.
  std::vector<RepeatedWeights> repeated;
};

// Counts the parameters, and subtracts opened files from `limits`. A parameter of several stages
// counts as in its lowest stage. Errors: kInvalidArgument with the reason if the existing files do
// not tell; kCancelled.
Result<SourceTotals> CountParameters(const Source& source, const ConversionRule& rule,
                                     const ParameterChoice& choice, TotalsLimits& limits,
                                     const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_
