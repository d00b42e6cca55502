// OpenedConversion: a conversion up to where something is done with it. Its source is open, its
// files are planned, and both are checked. Convert carries it out, Plan tells of it, a TargetView
// reads it.
#ifndef RESHARD_SRC_CONVERT_OPENED_CONVERSION_H_
#define RESHARD_SRC_CONVERT_OPENED_CONVERSION_H_

#include <memory>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_source.h"
#include "src/convert/timeline_recorder.h"
#include "src/convert/work_list.h"
#include "src/plan/target.h"

namespace reshard {

struct OpenedConversion {
  std::unique_ptr<OpenedSource> source;
  ConversionTarget made;  // refers to the source
  ConversionPlan plan;

  const Target& target() const { return made.files(); }
  const WorkList& work() const { return plan.work; }
  // Returns the plan of one of the files, which is kept no longer; made again if it was not.
  // Errors: those of PlanAgain. Any thread.
  Result<PlanHandle> TakePlan(const TargetFileSummary& file) const;
};

// One that is carried out.
struct Conversion {
  OpenedConversion& opened;
  const ConvertOptions& options;
  const MemoryBudget& budget;
  TimelineRecorder& timeline;
};

// Opens the source, plans all target files, and checks that the source is what it is taken for and
// the source strategy its own. Writes nothing. Errors: those of OpenUnplanned and of
// PlanConversion; kMismatch for a source strategy that is most likely another checkpoint's, for
// files that state another place than that which they are taken for, and for totals that are not
// the expected ones; kCancelled.
Result<OpenedConversion> OpenConversion(const ConvertOptions& options, const MemoryBudget& budget);

// The first half of it: opens the source and makes the target, and checks neither. The plan is
// empty. Errors: those of OpenSource and of MakeTarget.
Result<OpenedConversion> OpenUnplanned(const ConversionSpec& spec, const SourceLimits& limits);

// Says that a call begins to plan; OpenConversion does.
void ReportPlanning(const RunOptions& run);

// Returns what planning holds of sources.
HeldOfSources HeldOf(OpenedSource& source);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_OPENED_CONVERSION_H_
