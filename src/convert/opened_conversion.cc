#include "src/convert/opened_conversion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/convert/companions.h"
#include "src/convert/option_checks.h"
#include "src/convert/plan_cache.h"
#include "src/convert/rounded_count.h"
#include "src/convert/source_checks.h"
#include "src/convert/stated_places.h"
#include "src/convert/strategy_check.h"
#include "src/io/shared_work.h"
#include "src/mindspore/rank_list.h"

namespace reshard {
namespace {

// Returns the warning that there is no evidence for the source strategy, with advice on how to
// check it.
std::string Unconfirmed(const OpenedSource& source, std::string_view why,
                        const Findings& findings) {
  constexpr size_t kMostShapes = 3;
  std::vector<std::string> shapes;
  for (const TensorInfo& parameter : findings.largest_shapes) {
    if (shapes.size() == kMostShapes) break;
    if (parameter.shape.size() < 2) continue;
    shapes.push_back(fmt::format("{} {}", Quote(parameter.name), ToString(parameter.shape)));
  }
  return fmt::format(
      "{}: {}, so the strategy is unconfirmed. Compare the largest full shapes with the model's: "
      "{}; `checks.reference` compares all with a file",
      Escape(source.rule().source()->path()), why, fmt::join(shapes, ", "));
}

// Checks, before the first write, that the source is the expected one and that the source strategy
// belongs to it.
Status CheckSource(OpenedSource& source, const Target& target, const CheckChoice& checks,
                   const RunOptions& run, ConversionPlan& plan) {
  if (!checks.partial) RESHARD_RETURN_IF_ERROR(CheckSavedOffsets(source));
  RESHARD_ASSIGN_OR_RETURN(const std::optional<RoundedCount> expected, ExpectedParameters(checks));
  RESHARD_ASSIGN_OR_RETURN(const SampleLimits spent,
                           CheckTotals(source, target.choice(), expected, run.stop, plan.findings));
  std::vector<int64_t> files;
  files.reserve(plan.work.targets.size());
  for (const PlanReport::TargetFile& file : plan.work.targets) files.push_back(file.rank);
  const std::vector<int64_t> target_ranks = RanksOf(target, files);
  RESHARD_ASSIGN_OR_RETURN(
      StrategyFindings findings,
      CheckStrategy(source, target.choice(), StagesOf(source.rule(), target_ranks),
                    {.replicas = checks.replicas,
                     .unmatched = plan.unmatched_matrices,
                     .spent = expected ? SampleLimits{0, 0} : spent,
                     .workers = Workers(run.jobs),
                     .stop = run.stop}));
  for (Warning& warning : findings.warnings) {
    plan.findings.warnings.push_back(std::move(warning));
  }
  plan.findings.sample = findings.sample;
  if (!findings.unconfirmed.empty()) {
    plan.findings.notes.push_back(Unconfirmed(source, findings.unconfirmed, plan.findings));
  }
  return {};
}

// Adds which companions are copied, and what contradicts them. With Selection::ranks it may be
// none.
Status AddFindingsOfCompanions(const ConversionSpec& spec, ConversionPlan& plan) {
  RESHARD_ASSIGN_OR_RETURN(const std::string folder, CompanionFolder(spec));
  std::vector<std::string_view> names;
  for (const PlanReport::TargetFile& file : plan.work.targets) {
    if (file.kind == FileKind::kCompanion) names.push_back(file.path);
  }
  if (names.empty()) return {};
  plan.findings.notes.push_back(
      fmt::format("{}: copied from there: {}", Escape(folder), fmt::join(names, ", ")));
  if (std::find(names.begin(), names.end(), kModelConfig) == names.end()) return {};
  if (auto warning = CheckStatedDType(folder, spec.selection.casts)) {
    plan.findings.warnings.push_back(*std::move(warning));
  }
  return {};
}

}  // namespace

Result<PlanHandle> OpenedConversion::TakePlan(const PlanReport::TargetFile& file) const {
  if (PlanHandle known = plan.kept->Take(file.rank)) return known;
  return PlanAgain(target(), file);
}

void ReportPlanning(const RunOptions& run) {
  if (!run.progress) return;
  Progress progress;
  progress.phase = Progress::Phase::kPlan;
  run.progress(progress);
}

Status RemakeTarget(const TargetSpec& target, const Selection& selection,
                    OpenedConversion& opened) {
  RESHARD_ASSIGN_OR_RETURN(opened.made, MakeTarget(*opened.source, target, selection));
  std::vector<ExtraFile> extras;
  if (opened.strategy) {
    RESHARD_ASSIGN_OR_RETURN(extras.emplace_back(),
                             StrategyFileOf(opened.strategy->strategy, opened.target().choice()));
  }
  for (ExtraFile& file : MetaFilesOf(*opened.source, target, *opened.made.ranks)) {
    extras.push_back(std::move(file));
  }
  for (ExtraFile& file : CopiesOf(opened.source->companions())) {
    extras.push_back(std::move(file));
  }
  if (!extras.empty()) {
    opened.made.with_extras =
        std::make_unique<ExtraFilesTarget>(opened.target(), std::move(extras));
  }
  opened.made.files().set_states_crc(target.states_crc);
  return {};
}

Result<OpenedConversion> OpenUnplanned(const ConversionSpec& spec, const SourceLimits& limits,
                                       const KnownFacts* known) {
  const Selection& selection = spec.selection;
  SourceUse use{spec.target, selection.ranks, ChoiceOf(selection), false,
                known == nullptr ? nullptr : &known->files};
  OpenedConversion opened;
  if (HasCluster(spec.target)) {
    if (known != nullptr && known->strategy) {
      opened.strategy = MadeStrategy{*known->strategy, {}, {}};
    } else {
      RESHARD_ASSIGN_OR_RETURN(opened.strategy, MakeStrategyOf(spec, limits));
    }
    use.target.strategy = opened.strategy->strategy;
    for (const int64_t rank : selection.ranks) {
      if (rank < opened.strategy->strategy.ranks()) continue;
      return InvalidArgumentError(
          fmt::format("`ranks`: expected ranks of the cluster, 0 to {}, found {}",
                      opened.strategy->strategy.ranks() - 1, rank));
    }
  }
  RESHARD_ASSIGN_OR_RETURN(opened.source, OpenSource(spec.source, use, limits));
  if (spec.target.companions) {
    RESHARD_ASSIGN_OR_RETURN(const std::string folder, CompanionFolder(spec));
    RESHARD_ASSIGN_OR_RETURN(std::vector<ChosenFile> files,
                             FindCompanions(folder, opened.source->files()));
    opened.source->set_companions(std::move(files));
  }
  RESHARD_RETURN_IF_ERROR(RemakeTarget(spec.target, selection, opened));
  for (const int64_t rank : selection.ranks) {  // the numbers behind are those of extra files
    RESHARD_RETURN_IF_ERROR(CheckTargetRank(opened.source->rule(), rank));
  }
  return opened;
}

Result<OpenedConversion> OpenConversion(const ConvertOptions& options, const MemoryBudget& budget) {
  ReportPlanning(options.run);
  RESHARD_ASSIGN_OR_RETURN(OpenedConversion opened,
                           OpenUnplanned(options, LimitsOf(options, budget)));
  RESHARD_RETURN_IF_ERROR(CheckRanksOfNames(*opened.source, options.source));
  if (!options.checks.partial) RESHARD_RETURN_IF_ERROR(CheckAllParts(*opened.source));
  RESHARD_ASSIGN_OR_RETURN(opened.plan,
                           PlanConversion(*opened.source, opened.target(), options, budget));
  if (options.target.removes_redundancy &&
      !TargetContainer(*opened.source, options.target).has_metadata) {
    opened.plan.findings.notes.emplace_back(
        ".ckpt files cannot state that redundancy is removed: load them with "
        "remove_redundancy=True, which MindFormers has for safetensors files only");
  }
  if (opened.strategy) {
    Findings& findings = opened.plan.findings;
    for (const Warning& warning : opened.strategy->warnings) findings.warnings.push_back(warning);
    for (const std::string& note : opened.strategy->notes) findings.notes.push_back(note);
  }
  if (options.target.companions) {
    RESHARD_RETURN_IF_ERROR(AddFindingsOfCompanions(options, opened.plan));
  }
  RESHARD_RETURN_IF_ERROR(
      CheckSource(*opened.source, opened.target(), options.checks, options.run, opened.plan));
  return opened;
}

HeldOfSources HeldOf(OpenedSource& source) {
  const SourceFiles& files = source.files();
  const TableCache& tables = source.tables();
  // An index is there twice for a moment: as it is being made, and finished.
  return {files.PagesPeak(), files.HeldForHeaders(), files.Buffered(),
          tables.has_dropped() ? 2 * tables.largest() : 0};
}

}  // namespace reshard
