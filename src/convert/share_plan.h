// The plan of one worker's share. The first worker of a conversion plans all target files, checks
// all sources, and leaves a plan record (src/record/plan_record.h). A worker with the same options
// takes the sources from that record. It lists no folders of ranks, and opens only the sources of
// its own share.
//
// The record is never trusted: whatever does not fit is found, and then the worker plans all files
// by itself. That gives the same result, and the same errors as without a record.
#ifndef RESHARD_SRC_CONVERT_SHARE_PLAN_H_
#define RESHARD_SRC_CONVERT_SHARE_PLAN_H_

#include <optional>
#include <string>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_conversion.h"
#include "src/convert/opened_source.h"
#include "src/job/job_spec.h"
#include "src/os/job_lock.h"
#include "src/record/plan_record.h"

namespace reshard {

// The plan that another worker has left in a target folder.
struct KnownPlan {
  std::string fingerprint;
  JobText job;
  PlanRecord record;
};

// Returns a digest of the options that a plan follows from, and of the number of shares. Files are
// not read.
std::string DigestOfOptions(const ConvertOptions& options);

// Returns the record of a plan of all files; no value if the source has no files of ranks, or
// cannot tell when the folders changed. The job sets `PlanRecord::job`.
std::optional<PlanRecord> PlanRecordOf(const OpenedConversion& opened,
                                       const ConvertOptions& options);

// Returns the plan of equal options in the folder of `lock`, if there is one. Any thread; the lock
// may be shared.
std::optional<KnownPlan> FindKnownPlan(const JobLock& lock, const ConvertOptions& options);

struct PlannedShare {
  OpenedConversion opened;  // only the files of the share are planned
  JobSpec job;
};

// Plans the share of `options` by `known`. Returns no value if anything differs from the record:
// strategies, used sources, folders of these, or sizes of target files. Then planning all files
// tells why. Errors: kCancelled, kResourceExhausted.
Result<std::optional<PlannedShare>> PlanShare(const ConvertOptions& options,
                                              const MemoryBudget& budget, const KnownPlan& known);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_SHARE_PLAN_H_
