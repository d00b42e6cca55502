// The first pass of a conversion: every target rank is planned once, and only the sums are kept.
#ifndef RESHARD_SRC_API_CONVERSION_PLAN_H_
#define RESHARD_SRC_API_CONVERSION_PLAN_H_

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/api/opened_source.h"
#include "src/plan/planner.h"

namespace reshard {

// Plans each target rank that `options` asks for. Opens and indexes every source file that the run
// needs, and so pins its identity. memory_bytes and free_space_bytes of the report are left to the
// caller. Errors: those of Planner::PlanTarget; kCancelled.
Result<PlanReport> PlanConversion(const OpenedSource& source, const Planner& planner,
                                  const ConvertOptions& options);

}  // namespace reshard

#endif  // RESHARD_SRC_API_CONVERSION_PLAN_H_
