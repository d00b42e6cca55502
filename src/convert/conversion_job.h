// What a conversion tells the job that stages and publishes its files, and of its plan the report.
#ifndef RESHARD_SRC_CONVERT_CONVERSION_JOB_H_
#define RESHARD_SRC_CONVERT_CONVERSION_JOB_H_

#include <cstdint>
#include <set>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/job/target_job.h"

namespace reshard {

// The source ranks whose files the plan reads.
std::set<int64_t> RanksRead(const PlanReport& plan);

// Returns what the report of a run, or of a share of it, says of the whole conversion; the rest of
// it is left empty.
ConvertReport ReportOfAll(const PlanReport& plan);

// Errors: kInvalidArgument where the target lies in the source, or an output would replace a file
// of it or lie beside one; kIo.
Result<JobSpec> MakeJobSpec(const OpenedSource& source, const PlanReport& plan,
                            const ConvertOptions& options);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERSION_JOB_H_
