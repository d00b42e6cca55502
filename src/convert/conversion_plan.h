// The first pass of a conversion: plans every target file once, several at a time. Keeps the sums,
// added up in the order of the files, and small plans if there is memory for them.
#ifndef RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
#define RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
#include "src/plan/extra_files_target.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/plan/target.h"
#include "src/plan/target_plan.h"

namespace reshard {

using PlanVisitor = std::function<void(const TargetPlan& plan)>;

struct ConversionPlan {
  WorkList work;
  Findings findings;
  // If unmatched names are checked (UnmatchedMatrices).
  std::vector<std::string> unmatched_matrices;
  // Small plans, if there is memory for them. Not null once planned.
  std::shared_ptr<PlanCache> kept = {};
};

// Returns the limits for the source of a conversion within `budget`.
SourceLimits LimitsOf(const ConvertOptions& options, const MemoryBudget& budget);

// Returns the container of the target files.
const Container& TargetContainer(const OpenedSource& source, const TargetSpec& target);

// The target of a conversion: the files of ranks, a folder that is made from the file of one rank,
// or files that are made from lone files.
struct ConversionTarget {
  std::unique_ptr<MindSporeTarget> ranks;
  std::unique_ptr<FullTarget> folder;   // only for a folder of full tensors, else null
  std::unique_ptr<Target> with_extras;  // one of these and extra files; null if there are none
  std::unique_ptr<Target> lone;         // of files by themselves; then the others are null

  Target& files() const {
    if (lone) return *lone;
    if (with_extras) return *with_extras;
    if (folder) return *folder;
    return *ranks;
  }
};

// Returns the target; `source` has to outlive it. Errors: as FullTarget::Make; kMismatch for one
// stage alone as a folder.
Result<ConversionTarget> MakeTarget(const OpenedSource& source, const TargetSpec& spec,
                                    const Selection& selection);

// No other file is in its folder. So the folder can be passed as a strategy.
inline constexpr std::string_view kStrategyFilePath = "strategy/strategy.ckpt";

// Returns the file of `strategy`, by which ranks are cut, with the new names of parameters. Errors:
// those of ParameterChoice::TargetName, FromLayouts and EncodeStrategy.
Result<ExtraFile> StrategyFileOf(const Strategy& strategy, const ParameterChoice& choice);

// Returns the meta.json of each rank, if the names of `spec` are MindFormers'.
std::vector<ExtraFile> MetaFilesOf(const OpenedSource& source, const TargetSpec& spec,
                                   const Target& ranks);

// The most bytes of tensors in a file of a folder of whole ones.
uint64_t MostFileBytes(const TargetSpec& target);

// Returns the ranks that get the tensors of these files, each once, ascending.
std::vector<int64_t> RanksOf(const Target& target, std::span<const int64_t> files);

// Receives the facts of plans while they are made. `findings` are added to. `visit`, which may be
// empty, gets each plan, one after the other, on any thread.
struct PlanWatch {
  PlanFindings& findings;
  PlanVisitor visit;
};

// Plans each target file that `options` select. Compares the outputs with
// `options.checks.reference`, unless it is empty, and names with the strategies, unless
// `options.checks.partial` allows absent ones. Opens and indexes every source file that the run
// needs, and so pins its identity. The caller adds findings that need more than plans: sample,
// totals and stage_alone.
// Errors:
//   as Target::Plan, for the first file that has one
//   as FindingsOf, CheckReference and CheckNames
//   kCancelled
Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const ConvertOptions& options, const MemoryBudget& budget,
                                      const PlanWatch& watch);
Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const ConvertOptions& options, const MemoryBudget& budget);

// Plans these files of the target only, and checks nothing else. Errors: as Target::Plan;
// kCancelled.
Result<ConversionPlan> PlanFiles(const OpenedSource& source, const Target& target,
                                 std::span<const int64_t> files, const std::stop_token& stop,
                                 const MemoryBudget& budget);

// Returns the report of a plan for users, without memory and space.
PlanReport ReportOf(ConversionPlan plan);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_CONVERSION_PLAN_H_
