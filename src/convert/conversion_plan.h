// The first pass of a conversion: every target rank is planned once, and only the sums are kept.
#ifndef RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
#define RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_

#include <memory>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/plan_targets.h"
#include "src/mindspore/planner.h"
#include "src/plan/plan_notes.h"

namespace reshard {

// Opens the source of a conversion. Errors: those of OpenedSource::Open.
Result<std::unique_ptr<OpenedSource>> OpenSource(const ConvertOptions& options,
                                                 const MemoryBudget& budget);

// Returns the planner of a conversion; `source` has to outlive it.
Planner MakePlanner(const OpenedSource& source, const ConvertOptions& options);

// Plans each target rank that `options` asks for. Opens and indexes every source file that the run
// needs, and so pins its identity. What it takes more than plans to say is left to the caller:
// sample, totals, stage_alone, memory_bytes and free_space_bytes of the report. Errors: those of
// PlanTargets, FindingsOf, CheckReference and CheckNames; kCancelled.
Result<PlanReport> PlanConversion(const OpenedSource& source, const Planner& planner,
                                  const ConvertOptions& options, const MemoryBudget& budget);
// As above; calls `visit`, which may be empty, with each plan, and adds what was found to `notes`.
Result<PlanReport> PlanConversion(const OpenedSource& source, const Planner& planner,
                                  const ConvertOptions& options, const MemoryBudget& budget,
                                  PlanNotes& notes, const PlanVisitor& visit);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
