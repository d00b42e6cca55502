// The conversion of one shard's share, once all is planned.
#ifndef RESHARD_SRC_CONVERT_CONVERT_SHARD_H_
#define RESHARD_SRC_CONVERT_CONVERT_SHARD_H_

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/timeline_recorder.h"
#include "src/job/job_spec.h"
#include "src/mindspore/planner.h"

namespace reshard {

// Writes the share of options.shard, and publishes when all shares are finished. `plan` and `spec`
// are those of the whole conversion. Errors: as Convert; those of ShardJob.
Result<ConvertReport> ConvertShard(OpenedSource& source, const Planner& planner,
                                   const PlanReport& plan, const JobSpec& spec,
                                   const ConvertOptions& options, const MemoryBudget& budget,
                                   TimelineRecorder& timeline);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERT_SHARD_H_
