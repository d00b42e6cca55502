#include "src/convert/conversion_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
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

SourceAccess AccessOf(SourceIo io) {
  switch (io) {
    case SourceIo::kMap:
      return SourceAccess::kMap;
    case SourceIo::kPread:
      return SourceAccess::kPread;
    case SourceIo::kAuto:
      break;
  }
  return SourceAccess::kAuto;
}

}  // namespace

Result<std::unique_ptr<OpenedSource>> OpenSource(const ConvertOptions& options,
                                                 const MemoryBudget& budget) {
  return OpenedSource::Open({options.source, options.source_strategy, options.target_strategy,
                             options.suffix, options.source_files, options.group_info},
                            {.index_bytes = budget.index_bytes,
                             .window_bytes = budget.window_bytes,
                             .access = AccessOf(options.io.source),
                             .stop = options.stop,
                             .memory = CheckOf(budget)});
}

Planner MakePlanner(const OpenedSource& source, const ConvertOptions& options) {
  return {source.shards(), options.prefix, options.unmatched.value_or(UnmatchedPolicy::kCopy),
          ParameterChoice(options.include, options.exclude, options.renames)};
}

Result<PlanReport> PlanConversion(const OpenedSource& source, const Planner& planner,
                                  const ConvertOptions& options, const MemoryBudget& budget,
                                  PlanNotes& notes, const PlanVisitor& visit) {
  const std::set<int64_t> chosen(options.ranks.begin(), options.ranks.end());
  std::vector<int64_t> ranks(chosen.begin(), chosen.end());
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(source.rule().target_ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  PlanReport report;
  RESHARD_RETURN_IF_ERROR(
      PlanTargets(source, planner, ranks, budget, options.stop, visit, notes, report));
  if (options.stop.stop_requested()) return CancelledError("stopped while planning");
  RESHARD_ASSIGN_OR_RETURN(ChoiceFindings choice,
                           FindingsOf(planner.choice(), source.rule(), notes));
  report.parameters = notes.parameters.size();
  report.left_out = choice.left_out;
  report.renamed = choice.renamed;
  report.largest = BySize(notes);
  report.largest_shapes = LargestShapes(report.largest, notes);
  report.largest.resize(std::min(report.largest.size(), kLargest));
  report.warnings = source.warnings();
  for (std::string& warning : choice.warnings) report.warnings.push_back(std::move(warning));
  if (!options.reference.empty()) {
    RESHARD_RETURN_IF_ERROR(CheckReference(options.reference, notes, report.warnings));
  }
  if (!options.unmatched) {
    RESHARD_RETURN_IF_ERROR(
        CheckNames(source.rule(), ranks, notes, report.bytes_read, kUnmatchedAllowed));
  }
  for (std::string& warning : notes.Warnings()) report.warnings.push_back(std::move(warning));
  return report;
}

Result<PlanReport> PlanConversion(const OpenedSource& source, const Planner& planner,
                                  const ConvertOptions& options, const MemoryBudget& budget) {
  PlanNotes notes;
  return PlanConversion(source, planner, options, budget, notes, {});
}

}  // namespace reshard
