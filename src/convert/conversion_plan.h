// The first pass of a conversion: every target file is planned once, several at a time. The sums
// are kept, added up in the order of the files, and small plans, where there is memory for them.
#ifndef RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
#define RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/container/container.h"
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

// Returns what the source of a conversion may hold within `budget`.
SourceLimits LimitsOf(const ConvertOptions& options, const MemoryBudget& budget);

// Returns the container of the files that `format` has.
const Container& ContainerOf(TargetFormat format);
// Returns the container of the target files.
const Container& TargetContainer(const OpenedSource& source, const TargetSpec& target);

// The target of a conversion: the files of ranks, a folder that is made of those of one, or files
// that are made of lone ones.
struct ConversionTarget {
  std::unique_ptr<MindSporeTarget> ranks;
  std::unique_ptr<FullTarget> folder;  // null but for a folder of whole tensors
  std::unique_ptr<Target> lone;        // of files by themselves; then the others are null

  Target& files() const {
    if (lone) return *lone;
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

// What is told of plans while they are made: `findings` are added to, and `visit`, which may be
// empty, is called with each plan, one after the other, on any thread.
struct PlanWatch {
  PlanFindings& findings;
  PlanVisitor visit;
};

// Plans each target file that `options` select, holding what is written against
// `options.checks.reference`, unless it is empty, and names against the strategies, unless
// `options.checks.partial` allows that some are absent. Opens and indexes every source file that
// the run needs, and so pins its identity. What it takes more than plans to find is left to the
// caller: sample, totals and stage_alone. Errors: of the first file that has one, those of
// Target::Plan; those of FindingsOf, CheckReference and CheckNames; kCancelled.
Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const ConvertOptions& options, const MemoryBudget& budget,
                                      const PlanWatch& watch);
Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const ConvertOptions& options, const MemoryBudget& budget);

// Returns what users are told of a plan; memory and space are left out.
PlanReport ReportOf(ConversionPlan plan);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
