// SourceTotals: how many parameters a source has in all, whatever a run writes of it.
//
// From headers: in ordinary checkpoints the file of one rank of each stage tells. Thread-safe as
// Source is.
#ifndef RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_
#define RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_

#include <cstddef>
#include <stop_token>

#include "reshard/parameters.h"
#include "reshard/status.h"
#include "src/mindspore/conversion_rule.h"
#include "src/source/source.h"

namespace reshard {

// What may be opened of files that nobody needs otherwise.
struct TotalsLimits {
  size_t files = 0;
  size_t headers = 0;  // of parameters, in all of them
};

// Counts them; takes off `limits` what was opened. A parameter of several stages counts as its
// lowest one has it. Errors: kInvalidArgument where the files that are there do not tell, and says
// why; kCancelled.
Result<ParameterTotals> CountParameters(const Source& source, const ConversionRule& rule,
                                        TotalsLimits& limits, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_SOURCE_TOTALS_H_
