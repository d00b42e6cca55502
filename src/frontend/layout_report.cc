#include "src/frontend/layout_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "reshard/checkpoint.h"
#include "reshard/parameters.h"
#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/conversion_plan.h"
#include "src/convert/memory_budget.h"
#include "src/convert/opened_conversion.h"
#include "src/convert/opened_source.h"
#include "src/convert/option_checks.h"
#include "src/frontend/layout_sums.h"
#include "src/io/storage.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/output_check.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/run_folder.h"
#include "src/mindspore/strategy_tables.h"
#include "src/os/path_location.h"
#include "src/os/retries.h"
#include "src/os/used_files.h"
#include "src/os/write_file.h"
#include "src/plan/parameter_choice.h"
#include "src/plan/plan_findings.h"
#include "src/source/shard_grid.h"

namespace reshard {
namespace {

// By its name in the target; strategies and files have its name in the source.
using Parameter = std::pair<const std::string, PlanFindings::Parameter>;

// The grid of a layout, or of full tensors if there is none.
Result<ShardGrid> MakeGrid(const Strategy* strategy, int64_t stage, const Parameter& parameter) {
  const PlanFindings::Parameter& what = parameter.second;
  const std::string& name = what.source_name;
  const ParameterLayout* layout =
      strategy == nullptr ? nullptr : strategy->stages()[static_cast<size_t>(stage)].Find(name);
  const size_t dims = what.full_shape.size();
  if (layout == nullptr) return ShardGrid::Whole(dims);
  return MakeGrid(*layout, dims,
                  fmt::format("{}: parameter {}", Escape(strategy->path()), Quote(name)));
}

// Collects the ranks of one side, stage by stage.
class GridBuilder {
 public:
  GridBuilder(int64_t stages, int64_t devices, const Shape& full_shape)
      : devices_(devices), full_shape_(full_shape) {
    const int64_t ranks = stages * devices;
    grid_.ranks_per_cell = (ranks + kMostGridCells - 1) / kMostGridCells;
    grid_.cells.resize(
        static_cast<size_t>((ranks + grid_.ranks_per_cell - 1) / grid_.ranks_per_cell));
  }

  // Stages come in ascending order.
  void AddStage(int64_t stage, const ShardGrid& cut) {
    if (grid_.stages.empty()) {
      grid_.cuts = cut.cuts();
      grid_.shards = cut.parts();
      for (size_t d = 0; d < full_shape_.size(); ++d) {
        grid_.shard_shape.push_back(full_shape_[d] / cut.cuts()[d]);
      }
    }
    grid_.stages.push_back(stage);
    std::map<int64_t, int64_t> holders;  // ranks so far, by shard
    for (int64_t local = 0; local < devices_; ++local) {
      const int64_t shard = cut.PartNumberOf(local);
      const int64_t replica = holders[shard]++;
      grid_.replicas = std::max(grid_.replicas, replica + 1);
      const int64_t rank = stage * devices_ + local;
      if (rank % grid_.ranks_per_cell != 0) continue;
      grid_.cells[static_cast<size_t>(rank / grid_.ranks_per_cell)] = {shard, replica};
    }
  }

  DeviceGrid Take() { return std::move(grid_); }

 private:
  const int64_t devices_;
  const Shape& full_shape_;
  DeviceGrid grid_;
};

Result<DeviceGrid> SourceGrid(const OpenedSource& source, const Parameter& parameter) {
  const ConversionRule& rule = source.rule();
  GridBuilder builder(rule.source_stages(), rule.source_devices(), parameter.second.full_shape);
  const std::string& name = parameter.second.source_name;
  const bool in_strategy = rule.source() != nullptr && rule.source()->Contains(name);
  for (int64_t stage = 0; stage < rule.source_stages(); ++stage) {
    bool has = rule.source() == nullptr;
    if (in_strategy) {
      has = rule.source()->stages()[static_cast<size_t>(stage)].Find(name) != nullptr;
    } else if (rule.source() != nullptr) {  // no layout cuts it: the files tell
      for (const int64_t local : source.tensors().ranks().LocalRanks(stage)) {
        RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source.tensors().TableOf(stage, local));
        has = index->Find(name) != nullptr;
        if (has) break;
      }
    }
    if (!has) continue;
    RESHARD_ASSIGN_OR_RETURN(const ShardGrid cut, MakeGrid(rule.source(), stage, parameter));
    builder.AddStage(stage, cut);
  }
  return builder.Take();
}

// The first rank of each target stage that is planned.
std::map<int64_t, int64_t> PlannedStages(const PlanReport& plan, const ConversionRule& rule,
                                         const Target& target) {
  std::map<int64_t, int64_t> stages;
  for (const PlanReport::TargetFile& file : plan.targets) {
    const int64_t rank = target.RankOf(file.rank);
    stages.emplace(rule.TargetStage(rank), rank);
  }
  return stages;
}

Result<DeviceGrid> TargetGrid(const OpenedSource& source, const ConversionTarget& target,
                              const PlanReport& plan, const Parameter& parameter) {
  const ConversionRule& rule = source.rule();
  const int64_t stages =
      rule.target() == nullptr ? 1 : static_cast<int64_t>(rule.target()->stages().size());
  GridBuilder builder(stages, rule.target_ranks() / stages, parameter.second.full_shape);
  for (const auto& [stage, rank] : PlannedStages(plan, rule, target.files())) {
    PlanFindings findings;  // all has been said
    RESHARD_ASSIGN_OR_RETURN(const MindSporeTarget::Selected selection,
                             target.ranks->Select(rank, findings));
    const auto has = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), parameter.second.source_name) != names.end();
    };
    if (has(selection.converted)) {
      RESHARD_ASSIGN_OR_RETURN(const ShardGrid cut, MakeGrid(rule.target(), stage, parameter));
      builder.AddStage(stage, cut);
    } else if (has(selection.copied)) {
      builder.AddStage(stage, ShardGrid::Whole(parameter.second.full_shape.size()));
    }
  }
  return builder.Take();
}

// The cuts in the lowest stage that has the parameter.
Result<std::vector<int64_t>> CutsOf(const Strategy* strategy, const Parameter& parameter) {
  const PlanFindings::Parameter& what = parameter.second;
  const auto stage = strategy == nullptr ? std::nullopt : strategy->LowestStage(what.source_name);
  if (!stage) return std::vector<int64_t>(what.full_shape.size(), 1);
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid, MakeGrid(strategy, *stage, parameter));
  return grid.cuts();
}

// As the plans found it.
TensorInfo InfoOf(const Parameter& parameter) {
  const PlanFindings::Parameter& what = parameter.second;
  return {parameter.first, what.kind, what.target_dtype, what.full_shape, what.bytes};
}

Result<std::vector<ParameterCuts>> MakeCuts(const ConversionRule& rule,
                                            const PlanFindings& findings) {
  std::vector<ParameterCuts> all;
  all.reserve(findings.parameters.size());
  for (const Parameter& parameter : findings.parameters) {
    ParameterCuts& cuts =
        all.emplace_back(ParameterCuts{InfoOf(parameter), parameter.second.copied, {}, {}});
    if (cuts.copied) continue;
    RESHARD_ASSIGN_OR_RETURN(cuts.source_cuts, CutsOf(rule.source(), parameter));
    RESHARD_ASSIGN_OR_RETURN(cuts.target_cuts, CutsOf(rule.target(), parameter));
  }
  return all;
}

bool HasCuts(const std::vector<int64_t>& cuts) {
  return std::any_of(cuts.begin(), cuts.end(), [](int64_t parts) { return parts > 1; });
}

// The most telling parameter: one that is cut, not an optimizer's copy, and large; the first if
// several are. Null if there are no parameters.
const ParameterCuts* LargestCut(const std::vector<ParameterCuts>& parameters,
                                const PlanFindings& findings) {
  using Worth = std::tuple<bool, bool, uint64_t>;
  const ParameterCuts* largest = nullptr;
  Worth most;
  for (const ParameterCuts& parameter : parameters) {
    const bool cut = HasCuts(parameter.source_cuts) || HasCuts(parameter.target_cuts);
    const Worth worth(cut,
                      OptimizerGroup(findings.parameters.at(parameter.name).source_name).empty(),
                      parameter.bytes);
    if (largest != nullptr && worth <= most) continue;
    largest = &parameter;
    most = worth;
  }
  return largest;
}

// Returns the grids of the parameters `names`. Without names, returns the grid of the largest
// parameter: among those that are cut on either side (or all, if none is), among those that are not
// an optimizer's copy (or all, if all are). `findings` belong to the plans of `report`. Errors:
// kNotFound for a name that is not written; as MakeGrid; from opening files.
Result<std::vector<ParameterGrids>> MakeDeviceGrids(const OpenedSource& source,
                                                    const ConversionTarget& target,
                                                    const LayoutReport& report,
                                                    const PlanFindings& findings,
                                                    std::vector<std::string> names) {
  if (names.empty()) {
    const ParameterCuts* largest = LargestCut(report.parameters, findings);
    if (largest != nullptr) names.push_back(largest->name);
  }
  std::vector<ParameterGrids> grids;
  for (const std::string& name : names) {
    const auto found = findings.parameters.find(name);
    if (found == findings.parameters.end()) {
      return NotFoundError(fmt::format("{1}: is not among the {0} parameters that are written",
                                       findings.parameters.size(), Quote(name)));
    }
    ParameterGrids both{InfoOf(*found), {}, {}};
    RESHARD_ASSIGN_OR_RETURN(both.source, SourceGrid(source, *found));
    RESHARD_ASSIGN_OR_RETURN(both.target, TargetGrid(source, target, report.plan, *found));
    grids.push_back(std::move(both));
  }
  return grids;
}

SideSums SourceSums(const OpenedSource& source) {
  const ConversionRule& rule = source.rule();
  // Without a strategy only the existing files are known.
  SideSums sums = rule.source() == nullptr ? SideSums(0, 1, source.chosen().back().rank + 1)
                                           : SideSums(rule.SourceRank(0, 0), rule.source_stages(),
                                                      rule.source_devices());
  for (const ChosenFile& file : source.chosen()) {
    sums.AddFile(file.rank, file.identity.size());
  }
  return sums;
}

SideSums TargetSums(const ConversionRule& rule, const ConversionTarget& target) {
  if (target.folder) return {0, 1, target.folder->files()};
  const int64_t stages =
      rule.target() == nullptr ? 1 : static_cast<int64_t>(rule.target()->stages().size());
  return {0, stages, rule.target_ranks() / stages};
}

Result<LayoutReport> ReportOfPlan(const LayoutReportOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const MemoryBudget budget,
                           DivideMemory(options.conversion.memory_limit, 1));
  const MemoryWatch watch(WatchOf(budget));
  const ConvertOptions& conversion = options.conversion;
  SourceLimits limits = LimitsOf(conversion, budget);
  limits.lone_parts = LoneParts::kRefused;
  RESHARD_ASSIGN_OR_RETURN(OpenedConversion opened, OpenUnplanned(conversion, limits));
  const OpenedSource& source = *opened.source;
  const bool is_folder = opened.made.folder != nullptr;
  std::map<FileId, int64_t> ranks;
  for (const ChosenFile& file : source.chosen()) ranks.emplace(file.id, file.rank);
  LayoutSums sums(SourceSums(source), TargetSums(source.rule(), opened.made), std::move(ranks));

  LayoutReport report;
  report.path = conversion.source.path;
  report.planned = true;
  PlanFindings findings;
  const Target& target = opened.target();
  const auto add = [&](const TargetPlan& planned) {
    if (HoldsModel(target.KindOf(planned.rank))) sums.Add(planned, findings);
  };
  RESHARD_ASSIGN_OR_RETURN(opened.plan,
                           PlanConversion(source, target, conversion, budget, {findings, add}));
  report.plan = ReportOf(std::move(opened.plan));
  sums.Finish(findings, report);
  RESHARD_ASSIGN_OR_RETURN(report.parameters, MakeCuts(source.rule(), findings));
  RESHARD_ASSIGN_OR_RETURN(
      report.drawn, MakeDeviceGrids(source, opened.made, report, findings, options.parameters));
  report.step = StepText(source.step());
  if (source.rule().source() != nullptr) report.source.layout = *source.rule().source();
  report.source.strategy = source.spec().strategy.path();
  report.source.is_folder = source.tensors().ranks().is_folder;
  if (source.rule().target() != nullptr) report.target.layout = *source.rule().target();
  report.target.strategy = conversion.target.strategy.path();
  report.target.is_folder = is_folder;
  return report;
}

Result<RankFiles> FilesOf(const ConvertOptions& options) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind,
                           Storage::Of(options.source.path).KindOf(options.source.path));
  if (kind != PathKind::kFile && kind != PathKind::kOther) {
    return ListRankFiles(options.source);
  }
  return RankFiles{.files = {{0, options.source.path}}};  // opening it reports the error
}

// The facts that files have without a strategy.
Result<LayoutReport> ReportOfFiles(const LayoutReportOptions& options) {
  if (!options.parameters.empty()) {
    return InvalidArgumentError(
        "`parameters` needs `source.strategy` or `target.strategy`, which tell how parameters are "
        "cut: give a strategy, or leave `parameters` out");
  }
  RESHARD_ASSIGN_OR_RETURN(const RankFiles found, FilesOf(options.conversion));
  LayoutReport report;
  report.path = options.conversion.source.path;
  report.plan.warnings = found.warnings;
  report.plan.notes = found.notes;
  const int64_t first = found.files.front().rank;
  const int64_t last = found.files.back().rank;
  if (last - first >= kMaxRanks) {
    return UnsupportedError(
        fmt::format("{}: has the ranks {} to {}; no checkpoint has more than {}",
                    Escape(options.conversion.source.path), first, last, kMaxRanks));
  }
  SideSums sums(first, 1, last - first + 1);
  ShareSums dtypes;
  ShareSums prefixes;
  std::map<std::string, TensorInfo> parameters;
  for (size_t place = 0; place < found.files.size(); ++place) {
    const RankFiles::File& file = found.files[place];
    if (options.conversion.run.stop.stop_requested())
      return CancelledError("stopped while looking");
    RESHARD_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(found, place));
    for (const Warning& warning : checkpoint.warnings()) report.plan.warnings.push_back(warning);
    sums.AddFile(file.rank, checkpoint.file_size());
    report.plan.sources.push_back({file.rank, file.path, checkpoint.file_size()});
    for (const StoredArray& parameter : checkpoint.parameters()) {
      parameters.try_emplace(std::string(parameter.name),
                             TensorInfo{std::string(parameter.name), parameter.kind,
                                        parameter.dtype, parameter.shape, parameter.bytes});
      sums.AddContent(file.rank, parameter.bytes);
      const bool tensor = parameter.kind == ArrayKind::kTensor;
      dtypes.AddStored(tensor ? DTypeName(parameter.dtype) : kAsTheyStand, parameter.bytes);
      prefixes.AddStored(PrefixOf(parameter.name), parameter.bytes);
    }
  }
  report.plan.parameters = parameters.size();
  for (auto& [name, info] : parameters) {
    report.parameters.push_back({std::move(info), false, {}, {}});
  }
  const std::filesystem::path first_file = found.files.front().path;
  report.step = StepText(StepOf(first_file.stem().string()));  // all files have one step
  report.source = sums.side();
  report.dtypes = dtypes.Sorted();
  report.prefixes = prefixes.Sorted();
  return report;
}

// No folder is made for a report: a mistyped one would be in the way later.
Status CheckFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(folder).KindOf(folder));
  if (kind == PathKind::kDirectory) return {};
  return IoError(fmt::format("{}: there is no folder {}; make it, or choose another file",
                             Escape(path), Escape(folder)));
}

}  // namespace

Result<LayoutReport> MakeLayoutReport(const LayoutReportOptions& options) {
  return CatchOutOfMemory([&]() -> Result<LayoutReport> {
    const RetryScope retries(options.conversion.run);
    const SourceSpec source = InRunFolder(options.conversion.source);
    if (source.path.empty()) return InvalidArgumentError("a source is needed");
    if (source.key != nullptr) NoteKeyFile(source.key->file());
    const TargetSpec& target = options.conversion.target;
    const bool planned = !source.strategy.empty() || !target.strategy.empty() ||
                         HasCluster(target) || IsWholeFolder(target.format);
    const Selection& selection = options.conversion.selection;
    if (!planned && !ChoiceOf(selection).TakesAll()) {
      return InvalidArgumentError(
          "`include`, `exclude` and `weights_only` choose parameters of a conversion; name "
          "`source.strategy`, `target.strategy` or both");
    }
    return planned ? ReportOfPlan(options) : ReportOfFiles(options);
  });
}

Status CheckReport(const std::string& path, bool force, const std::string& target) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_RETURN_IF_ERROR(CheckOutputsOutside(target));
    const std::string folder = FolderOf(path);
    Status in_folder = CheckFolder(path);
    if (in_folder.ok()) return CheckWritable(path, force);
    if (target.empty()) return in_folder;
    RESHARD_ASSIGN_OR_RETURN(const PathLocation place, PathLocation::Of(folder));
    RESHARD_ASSIGN_OR_RETURN(const PathLocation made, PathLocation::Of(target));
    return place.From(made) == "" ? Status() : in_folder;
  });
}

Status WriteReport(const std::string& path, std::string_view page, bool force) {
  return CatchOutOfMemory([&]() -> Status {
    RESHARD_RETURN_IF_ERROR(CheckFolder(path));
    return WriteFile(path, page, force);
  });
}

}  // namespace reshard
