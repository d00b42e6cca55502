#include "reshard/layout_report.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "reshard/checkpoint.h"
#include "reshard/rank_files.h"
#include "src/api/device_grids.h"
#include "src/api/layout_sums.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/conversion_spec.h"
#include "src/convert/memory_budget.h"
#include "src/mindspore/strategy.h"
#include "src/os/paths.h"
#include "src/os/write_file.h"

namespace reshard {
namespace {

SideSums SourceSums(const OpenedSource& source) {
  const ConversionRule& rule = source.rule();
  SideSums sums(rule.SourceRank(0, 0), rule.source_stages(), rule.source_devices());
  for (const OpenedSource::File& file : source.chosen()) {
    sums.AddFile(file.rank, file.identity.size);
  }
  return sums;
}

SideSums TargetSums(const ConversionRule& rule) {
  const int64_t stages =
      rule.target() == nullptr ? 1 : static_cast<int64_t>(rule.target()->stages().size());
  return {0, stages, rule.target_ranks() / stages};
}

Result<LayoutReport> ReportOfPlan(const LayoutReportOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                           DivideMemory(options.conversion.memory_limit, 1));
  const ConversionSpec spec = SpecOf(options.conversion);
  RESHARD_ASSIGN_OR_RETURN(const auto source, OpenSource(spec, budget));
  const MindSporeTarget planner = MakeTarget(*source, spec);
  std::map<FileId, int64_t> ranks;
  for (const OpenedSource::File& file : source->chosen()) ranks.emplace(file.id, file.rank);
  LayoutSums sums(SourceSums(*source), TargetSums(source->rule()), std::move(ranks));

  LayoutReport report;
  report.planned = true;
  PlanNotes notes;
  RESHARD_ASSIGN_OR_RETURN(
      ConversionPlan plan,
      PlanConversion(*source, planner, spec.selection, spec.checks.reference, budget, spec.run.stop,
                     notes, [&](const TargetPlan& target) { sums.Add(target, notes); }));
  report.plan = ReportOf(std::move(plan));
  sums.Finish(notes, report);
  RESHARD_ASSIGN_OR_RETURN(
      report.parameters, MakeDeviceGrids(*source, planner, report.plan, notes, options.parameters));
  report.source.strategy = options.conversion.source_strategy;
  report.target.strategy = options.conversion.target_strategy;
  return report;
}

Result<RankFiles> FilesOf(const ConvertOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(options.source));
  if (kind != PathKind::kFile && kind != PathKind::kOther) {
    return ListRankFiles(options.source, options.suffix);
  }
  return RankFiles{.files = {{0, options.source}}, .warnings = {}};  // opening says what is wrong
}

// All that files tell without a strategy.
Result<LayoutReport> ReportOfFiles(const LayoutReportOptions& options) {
  if (!options.parameters.empty()) {
    return InvalidArgumentError(
        "without --src-strategy or --dst-strategy nothing is known of how parameters are cut: name "
        "a strategy, or leave --param out");
  }
  RESHARD_ASSIGN_OR_RETURN(const RankFiles found, FilesOf(options.conversion));
  LayoutReport report;
  report.plan.warnings = found.warnings;
  const int64_t first = found.files.front().rank;
  const int64_t last = found.files.back().rank;
  if (last - first >= kMaxRanks) {
    return UnsupportedError(
        fmt::format("{}: has the ranks {} to {}; no checkpoint has more than {}",
                    Escape(options.conversion.source), first, last, kMaxRanks));
  }
  SideSums sums(first, 1, last - first + 1);
  ShareSums dtypes;
  ShareSums prefixes;
  std::set<std::string> names;
  for (const RankFileSummary& file : found.files) {
    if (options.conversion.stop.stop_requested()) return CancelledError("stopped while looking");
    RESHARD_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(file.path));
    sums.AddFile(file.rank, checkpoint.file_size());
    report.plan.sources.push_back({file.rank, file.path, checkpoint.file_size()});
    for (const StoredArray& parameter : checkpoint.parameters()) {
      names.insert(parameter.name);
      sums.AddContent(file.rank, parameter.bytes);
      const bool tensor = parameter.kind == ArrayKind::kTensor;
      dtypes.AddStored(tensor ? DTypeName(parameter.dtype) : kAsTheyStand, parameter.bytes);
      prefixes.AddStored(PrefixOf(parameter.name), parameter.bytes);
    }
  }
  report.plan.parameters = names.size();
  report.source = sums.side();
  report.dtypes = dtypes.Sorted();
  report.prefixes = prefixes.Sorted();
  return report;
}

std::string FolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// No folder is made for a report: a mistyped one would be in the way later.
Status CheckFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(folder));
  if (kind == PathKind::kDirectory) return {};
  return IoError(fmt::format("{}: there is no folder {}; make it, or choose another file",
                             Escape(path), Escape(folder)));
}

}  // namespace

Result<LayoutReport> MakeLayoutReport(const LayoutReportOptions& options) {
  return CatchOutOfMemory([&]() -> Result<LayoutReport> {
    if (options.conversion.source.empty()) return InvalidArgumentError("a source is needed");
    const bool planned =
        !options.conversion.source_strategy.empty() || !options.conversion.target_strategy.empty();
    return planned ? ReportOfPlan(options) : ReportOfFiles(options);
  });
}

Status CheckReport(const std::string& path, bool force, const UsedPaths& used) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_RETURN_IF_ERROR(CheckOutput(path, used));
    const std::string folder = FolderOf(path);
    Status in_folder = CheckFolder(path);
    if (in_folder.ok()) return CheckWritable(path, force);
    for (const std::string& target : used.targets) {
      if (target.empty()) continue;
      RESHARD_ASSIGN_OR_RETURN(const PathLocation place, PathLocation::Of(folder));
      RESHARD_ASSIGN_OR_RETURN(const PathLocation made, PathLocation::Of(target));
      if (place.From(made) == "") return {};
    }
    return in_folder;
  });
}

Status WriteReport(const std::string& path, std::string_view page, bool force) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_RETURN_IF_ERROR(CheckFolder(path));
    return WriteFile(path, page, force);
  });
}

}  // namespace reshard
