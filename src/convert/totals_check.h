// The totals of a source, stated and compared with those that are expected.
#ifndef RESHARD_SRC_CONVERT_TOTALS_CHECK_H_
#define RESHARD_SRC_CONVERT_TOTALS_CHECK_H_

#include <optional>
#include <stop_token>

#include "reshard/parameter_count.h"
#include "reshard/status.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/opened_source.h"
#include "src/verify/shard_sample.h"

namespace reshard {

// Adds the totals of `source` to `findings`, where the files tell them, and whether it is a stage
// alone. Returns what was read and opened for that only: a part of SampleLimitsFor, more where
// totals are expected. Errors: kMismatch for totals that are not the expected ones;
// kInvalidArgument where some are expected and the files do not tell; kCancelled.
Result<SampleLimits> CheckTotals(const OpenedSource& source,
                                 const std::optional<RoundedCount>& expected,
                                 const std::stop_token& stop, PlanFindings& findings);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_TOTALS_CHECK_H_
