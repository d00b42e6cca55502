#include "src/convert/conversion_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "reshard/optimizer_names.h"
#include "src/base/status_macros.h"
#include "src/convert/reference_check.h"
#include "src/mindspore/choice_findings.h"
#include "src/mindspore/unmatched_names.h"

namespace reshard {
namespace {

constexpr size_t kLargest = 5;

// All parameters, the largest first.
std::vector<ParameterSummary> BySize(const PlanNotes& notes) {
  std::vector<ParameterSummary> all;
  for (const auto& [name, parameter] : notes.parameters) {
    all.push_back({name, parameter.dtype, parameter.full_shape, parameter.bytes});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return all;
}

// Of those, sorted by size. An optimizer's copies have the shapes that their parameters have.
std::vector<ParameterSummary> LargestShapes(const std::vector<ParameterSummary>& all,
                                            const PlanNotes& notes) {
  const auto is_own = [&notes](const ParameterSummary& parameter) {
    return OptimizerGroup(notes.parameters.at(parameter.name).source_name).empty();
  };
  const bool any_own = std::any_of(all.begin(), all.end(), [&](const ParameterSummary& parameter) {
    return is_own(parameter) && ElementCount(parameter.full_shape).value_or(0) > 1;
  });
  std::vector<ParameterSummary> chosen;
  for (const ParameterSummary& parameter : all) {
    if (chosen.size() == kLargest) break;
    const bool seen = std::any_of(chosen.begin(), chosen.end(), [&](const ParameterSummary& other) {
      return other.full_shape == parameter.full_shape;
    });
    if (!seen && (is_own(parameter) || !any_own)) chosen.push_back(parameter);
  }
  return chosen;
}

}  // namespace

Result<std::unique_ptr<OpenedSource>> OpenSource(const ConversionSpec& spec,
                                                 const MemoryBudget& budget) {
  return OpenedSource::Open(spec.source, {.index_bytes = budget.index_bytes,
                                          .window_bytes = budget.window_bytes,
                                          .access = spec.access,
                                          .stop = spec.run.stop,
                                          .memory = CheckOf(budget)});
}

Planner MakePlanner(const OpenedSource& source, const ConversionSpec& spec) {
  const Selection& selection = spec.selection;
  return {source.shards(), spec.target.prefix, selection.unmatched,
          ParameterChoice(selection.include, selection.exclude, selection.renames)};
}

Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Planner& planner,
                                      const Selection& selection, const std::string& reference,
                                      const MemoryBudget& budget, const std::stop_token& stop,
                                      PlanNotes& notes, const PlanVisitor& visit) {
  std::vector<int64_t> ranks = selection.ranks;
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(source.rule().target_ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  ConversionPlan plan;
  RESHARD_RETURN_IF_ERROR(
      PlanTargets(source, planner, ranks, budget, stop, visit, notes, plan.work));
  if (stop.stop_requested()) return CancelledError("stopped while planning");
  RESHARD_ASSIGN_OR_RETURN(ChoiceFindings choice,
                           FindingsOf(planner.choice(), source.rule(), notes));
  PlanFindings& findings = plan.findings;
  findings.parameters = notes.parameters.size();
  findings.left_out = choice.left_out;
  findings.renamed = choice.renamed;
  findings.largest = BySize(notes);
  findings.largest_shapes = LargestShapes(findings.largest, notes);
  findings.largest.resize(std::min(findings.largest.size(), kLargest));
  findings.warnings = source.warnings();
  for (std::string& warning : choice.warnings) findings.warnings.push_back(std::move(warning));
  if (!reference.empty()) {
    RESHARD_RETURN_IF_ERROR(CheckReference(reference, notes, findings.warnings));
  }
  if (!selection.unmatched_asked_for) {
    RESHARD_RETURN_IF_ERROR(
        CheckNames(source.rule(), ranks, notes, plan.work.bytes_read, kUnmatchedAllowed));
  }
  for (std::string& warning : notes.Warnings()) findings.warnings.push_back(std::move(warning));
  return plan;
}

Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Planner& planner,
                                      const Selection& selection, const std::string& reference,
                                      const MemoryBudget& budget, const std::stop_token& stop) {
  PlanNotes notes;
  return PlanConversion(source, planner, selection, reference, budget, stop, notes, {});
}

PlanReport ReportOf(ConversionPlan plan) {
  auto& [work, findings] = plan;
  PlanReport report;
  report.warnings = std::move(findings.warnings);
  report.sources.reserve(work.sources.size());
  for (SourceWork& source : work.sources) {
    report.sources.push_back({source.rank, std::move(source.path), source.size});
  }
  report.targets.reserve(work.targets.size());
  for (TargetWork& target : work.targets) {
    report.targets.push_back({target.rank, std::move(target.path), target.size, target.parameters,
                              target.runs, std::move(target.source_ranks)});
  }
  report.largest = std::move(findings.largest);
  report.largest_shapes = std::move(findings.largest_shapes);
  report.totals = findings.totals;
  report.stage_alone = findings.stage_alone;
  report.parameters = findings.parameters;
  report.left_out = findings.left_out;
  report.renamed = findings.renamed;
  report.bytes_read = work.bytes_read;
  report.bytes_written = work.bytes_written;
  report.runs = work.runs;
  report.shortest_run = work.shortest_run;
  report.longest_run = work.longest_run;
  report.largest_plan_bytes = work.largest_plan_bytes;
  report.sample = findings.sample;
  return report;
}

}  // namespace reshard
