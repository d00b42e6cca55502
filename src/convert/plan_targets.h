// The plans of many target ranks, several made at a time, summed up in the order of the ranks.
#ifndef RESHARD_SRC_CONVERT_PLAN_TARGETS_H_
#define RESHARD_SRC_CONVERT_PLAN_TARGETS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include "reshard/status.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/work_list.h"
#include "src/mindspore/planner.h"
#include "src/plan/plan_notes.h"
#include "src/plan/target_plan.h"

namespace reshard {

using PlanVisitor = std::function<void(const TargetPlan& plan)>;

// Plans `ranks`, ascending, and adds what the plans come to to `work`, and what was found to
// `notes`; whatever number of plans `budget` lets be made at a
// time, both are the same. Calls `visit`, which may be empty, with each plan; then one is made
// after the other. Errors: of the first rank that has one, those of Planner::PlanTarget;
// kCancelled.
Status PlanTargets(const OpenedSource& source, const Planner& planner,
                   std::span<const int64_t> ranks, const MemoryBudget& budget,
                   const std::stop_token& stop, const PlanVisitor& visit, PlanNotes& notes,
                   WorkList& work);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_PLAN_TARGETS_H_
