// The first pass of a conversion: every target rank is planned once, several at a time. The sums
// are kept, added up in the order of the ranks, and small plans, where there is memory for them.
#ifndef RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
#define RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/convert.h"
#include "reshard/findings.h"
#include "reshard/options.h"
#include "reshard/status.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/plan_cache.h"
#include "src/convert/work_list.h"
#include "src/full/full_target.h"
#include "src/mindspore/mindspore_target.h"
#include "src/plan/each_file_target.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_plan.h"

namespace reshard {

using PlanVisitor = std::function<void(const TargetPlan& plan)>;

SourceAccess AccessOf(SourceIo io);

struct ConversionPlan {
  WorkList work;
  Findings findings;
  // Where unmatched names are checked (UnmatchedMatrices).
  std::vector<std::string> unmatched_matrices;
  // Small plans, where there is memory for them. Not null once planned.
  std::shared_ptr<PlanCache> kept = {};
};

// Opens the source of a conversion. Errors: those of OpenSource.
Result<std::unique_ptr<OpenedSource>> OpenSource(const ConvertOptions& options,
                                                 const MemoryBudget& budget);

// Returns what the source of a conversion may hold within `budget`.
SourceLimits LimitsOf(const ConvertOptions& options, const MemoryBudget& budget);

// Returns the container of the target files.
Container TargetContainer(const OpenedSource& source, const TargetSpec& target);

// The target of a conversion: the files of ranks, a folder that is made of those of one, or each
// source file by itself.
struct ConversionTarget {
  std::unique_ptr<const MindSporeTarget> ranks;
  std::unique_ptr<const FullTarget> folder;    // null but for a folder of whole tensors
  std::unique_ptr<const EachFileTarget> each;  // then the others are null

  const Target& files() const {
    if (each) return *each;
    if (folder) return *folder;
    return *ranks;
  }
};

// Returns it; `source` has to outlive it. Errors: those of FullTarget::Make; kMismatch for one
// stage alone as a folder.
Result<ConversionTarget> MakeTarget(const OpenedSource& source, const TargetSpec& spec,
                                    const Selection& selection);

// The most bytes of tensors in a file of a folder of whole ones.
uint64_t MostFileBytes(const TargetSpec& target);

// Returns the ranks that get what these files hold, each once, ascending.
std::vector<int64_t> RanksOf(const Target& target, std::span<const int64_t> files);

// Plans each target rank of `selection`, holding what is written against `checks.reference`, unless
// it is empty, and names against the strategies, unless `checks.partial` allows that some are
// absent. Opens and indexes every source file that the run needs, and so pins its identity. What it
// takes more than plans to find is left to the caller: sample, totals and stage_alone. Errors: of
// the first rank that has one, those of Target::Plan; those of FindingsOf, CheckReference and
// CheckNames; kCancelled.
Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const Selection& selection, const CheckChoice& checks,
                                      const MemoryBudget& budget, const std::stop_token& stop);
// As above; calls `visit`, which may be empty, with each plan, one after the other, on any thread,
// and adds what was found to `findings`.
Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const Selection& selection, const CheckChoice& checks,
                                      const MemoryBudget& budget, const std::stop_token& stop,
                                      PlanFindings& findings, const PlanVisitor& visit);

// Returns what users are told of a plan; memory and space are left out.
PlanReport ReportOf(ConversionPlan plan);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
