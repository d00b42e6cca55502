// OpenedConversion: a conversion after its first steps. Its source is open, its files are planned,
// and both are checked. Convert carries it out, Plan reports it, a TargetView reads it.
#ifndef RESHARD_SRC_CONVERT_OPENED_CONVERSION_H_
#define RESHARD_SRC_CONVERT_OPENED_CONVERSION_H_

#include <memory>
#include <optional>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/convert/cluster_source.h"
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
  std::optional<MadeStrategy> strategy;  // of a cluster

  const Target& target() const { return made.files(); }
  const WorkList& work() const { return plan.work; }
  // Returns the plan of a file, and does not keep it. Makes it again if it was not kept. Errors: as
  // PlanAgain. Any thread.
  Result<PlanHandle> TakePlan(const PlanReport::TargetFile& file) const;
};

// One that is carried out.
struct Conversion {
  OpenedConversion& opened;
  const ConvertOptions& options;
  const MemoryBudget& budget;
  TimelineRecorder& timeline;
};

// Opens the source, plans all target files, and checks that the source is the expected one and that
// the source strategy belongs to it. Writes no files.
// Errors: as OpenUnplanned and PlanConversion, and
//   kMismatch: the source strategy is most likely another checkpoint's, files state other places
//   than
//     those they are used for, or totals differ from the expected ones
//   kCancelled
Result<OpenedConversion> OpenConversion(const ConvertOptions& options, const MemoryBudget& budget);

// What another process has found out for the same options.
struct KnownFacts {
  std::vector<KnownFile> files;      // as in SourceUse
  std::optional<Strategy> strategy;  // that was made for the target's cluster
};

// The first half: opens the source and makes the target, without checks. The plan is empty. Errors:
// as OpenSource and MakeTarget.
Result<OpenedConversion> OpenUnplanned(const ConversionSpec& spec, const SourceLimits& limits,
                                       const KnownFacts* known = nullptr);

// Makes the target of an opened conversion again, of another format. Errors: those of MakeTarget
// and StrategyFileOf.
Status RemakeTarget(const TargetSpec& target, const Selection& selection, OpenedConversion& opened);

// Says that a call begins to plan; OpenConversion does.
void ReportPlanning(const RunOptions& run);

// Returns the memory that planning holds for sources.
HeldOfSources HeldOf(OpenedSource& source);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_OPENED_CONVERSION_H_
