// The specification of a conversion for the job that stages and publishes its files.
#ifndef RESHARD_SRC_CONVERT_CONVERSION_JOB_H_
#define RESHARD_SRC_CONVERT_CONVERSION_JOB_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/convert/opened_source.h"
#include "src/convert/option_checks.h"
#include "src/convert/work_list.h"
#include "src/job/job_spec.h"

namespace reshard {

// Returns the XXH3-128 digest of a strategy's layouts. It does not depend on the strategy's files.
std::string StrategyDigest(const Strategy& strategy);

// The source ranks with files that are read.
std::set<int64_t> SourceRanks(const WorkList& work);

// Returns the spec of the job that does `work`. The fingerprint is equal for runs that would write
// the same files from the same sources, even if each does other target ranks.
// Errors:
//   kInvalidArgument: the target lies in the source; or an output would replace a file that is
//   read, or
//     lie beside one
//   as CheckOutputsOutside
//   kIo
Result<JobSpec> MakeJobSpec(const OpenedSource& source, const WorkList& work,
                            const ConvertOptions& options);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERSION_JOB_H_
