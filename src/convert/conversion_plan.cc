#include "src/convert/conversion_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "format/container_table/container_table.h"
#include "format/rename_map/name_rules.h"
#include "format/rename_map/renaming.h"
#include "reshard/parameters.h"
#include "reshard/tensor.h"
#include "src/base/memory_check.h"
#include "src/base/status_macros.h"
#include "src/convert/option_checks.h"
#include "src/convert/source_checks.h"
#include "src/digest/digest128.h"
#include "src/mindspore/choice_findings.h"
#include "src/mindspore/resume_files.h"
#include "src/mindspore/strategy_names.h"
#include "src/mindspore/strategy_writer.h"
#include "src/mindspore/unmatched_names.h"
#include "src/os/threads.h"

namespace reshard {
namespace {

// How many ranks a worker plans before it waits for the others.
constexpr size_t kRanksOfWorker = 8;

// The data of a TargetDigest for a segment: its sum, and the index of its copies' sums. A
// ChunkDigest has as much for each segment in the chunk.
constexpr size_t kDigestOfSegment = sizeof(Digest128) + sizeof(size_t);
constexpr size_t kDigestOfCopy = sizeof(Digest128);

// About the bytes for an array with this name in the table of a written file. The table is made
// when the file is read back for its CRC.
size_t TableBytes(std::string_view name) { return 3 * sizeof(StoredArray) + name.size(); }

// The kept facts of a target rank's plan.
struct PlanSums {
  PlanReport::TargetFile target;
  std::vector<FileId> sources;
  uint64_t bytes_read = 0;
  uint64_t shortest_run = 0;
  uint64_t longest_run = 0;
  uint64_t plan_bytes = 0;
  uint64_t digest_bytes = 0;
  uint64_t table_bytes = 0;
  uint64_t step_bytes = 0;
  std::optional<TargetPlan> plan;  // if it is complete
};

void AddToSums(PlanSums& sums, const Segment& segment) {
  sums.plan_bytes += MemoryBytes(segment);
  sums.digest_bytes += kDigestOfSegment;
  const auto* content = std::get_if<Content>(&segment);
  if (content == nullptr) return;
  sums.table_bytes += TableBytes(content->target_name);
  sums.digest_bytes += content->copies.size() * kDigestOfCopy;
  sums.plan_bytes += content->source_name.size();
  if (content->target_name != content->source_name) sums.plan_bytes += content->target_name.size();
  for (const BlockCopy& copy : content->copies) {
    sums.shortest_run =
        sums.target.runs == 0 ? copy.run_length : std::min(sums.shortest_run, copy.run_length);
    sums.longest_run = std::max(sums.longest_run, copy.run_length);
    sums.bytes_read += copy.bytes();
    sums.target.runs += copy.runs();
  }
}

// Plans a rank for its sums. The segments are not held together if they exceed `most_kept` bytes,
// or if `visit` gets them.
Result<PlanSums> SumsOf(const Target& target, int64_t rank, const PlanVisitor& visit,
                        uint64_t most_kept, PlanFindings& findings) {
  PlanSums sums;
  SegmentVisitor add;
  if (!visit) add = [&sums](const Segment& segment) { AddToSums(sums, segment); };
  RESHARD_ASSIGN_OR_RETURN(TargetPlan plan, target.Plan(rank, findings, add, most_kept));
  if (visit) {
    for (const Segment& segment : plan.segments) AddToSums(sums, segment);
  }
  sums.plan_bytes += sizeof(TargetPlan) + sums.digest_bytes;
  sums.step_bytes = std::max(plan.making_bytes, sums.digest_bytes);
  // Both are held until the file is finished.
  if (plan.StatesCrc(CrcPlace::kInHeader)) sums.plan_bytes += sums.table_bytes;
  sums.target = {plan.rank,        plan.path, plan.size,          plan.parameters,
                 sums.target.runs, {},        target.KindOf(rank)};
  if (visit) visit(plan);
  sums.sources = plan.sources;
  if (!visit && plan.is_whole) sums.plan = std::move(plan);
  return sums;
}

class TargetPlanning {
 public:
  // `plan` gets the sums of the plans.
  TargetPlanning(const OpenedSource& source, const Target& target, const MemoryBudget& budget,
                 const std::stop_token& stop, const PlanWatch& watch, ConversionPlan& plan)
      : source_(source),
        target_(target),
        budget_(budget),
        stop_(stop),
        visit_(watch.visit),
        findings_(watch.findings),
        work_(plan.work),
        kept_(*plan.kept),
        askers_(source.Askers(budget.lanes)) {
    for (const ChosenFile& file : source.chosen()) chosen_.emplace(file.id, &file);
  }

  // Plans `ranks`, ascending. The result does not depend on the number of plans that the budget
  // allows at a time. With a visitor, plans are made one after the other.
  Status Plan(std::span<const int64_t> ranks) {
    // Side by side from the begin on: to grow takes twice as much.
    RESHARD_RETURN_IF_ERROR(
        CheckMemory(source_.tensors().memory(), ranks.size() * sizeof(PlanReport::TargetFile)));
    work_.targets.reserve(ranks.size());
    std::optional<int64_t> stage;  // the stage whose first rank is planned; the others follow it
    while (!ranks.empty()) {
      if (stop_.stop_requested()) return CancelledError("stopped while planning");
      const int64_t next_stage = target_.StageOf(ranks.front());
      const size_t room = Room() / 2;  // half for plans, half for the findings of waiting plans
      const size_t workers = std::clamp<size_t>(room, 1, IndexersNow().workers);
      size_t count = 1;
      if (stage == next_stage && workers > 1) {
        count = OfStage(next_stage,
                        ranks.first(std::min({ranks.size(), room, workers * kRanksOfWorker})));
      }
      RESHARD_RETURN_IF_ERROR(count == 1 ? PlanOne(ranks)
                                         : PlanTogether(ranks.first(count), workers));
      stage = next_stage;
      ranks = ranks.subspan(count);
    }
    return {};
  }

  void AddSources() {
    for (const auto& [rank, file] : used_) {
      work_.sources.push_back({rank, source_.path(*file), file->identity.size()});
    }
  }

 private:
  // The number of plans that fit in memory before the first write. The first plan tells their size,
  // which is more than a rank adds to the findings.
  size_t Room() const {
    if (visit_ || work_.targets.empty()) return 1;
    return (budget_.plan_bytes + budget_.write_back_bytes) /
           std::max<uint64_t>(work_.largest_plan_bytes + work_.largest_step_bytes, 1);
  }

  // So many bytes of each of `plans` plans may be kept.
  uint64_t MostKept(size_t plans) const {
    return (budget_.kept_plan_bytes - std::min(budget_.kept_plan_bytes, kept_.bytes())) / plans;
  }

  // The file that each thread is indexing stays in memory, for any budget.
  Indexers IndexersNow() const {
    const uint64_t most = budget_.index_bytes / 2;
    return {askers_, std::max<uint64_t>(most / std::max<size_t>(source_.tables().largest(), 1), 1)};
  }

  // How many of `ranks`, from the first on, are of target stage `stage`.
  size_t OfStage(int64_t stage, std::span<const int64_t> ranks) const {
    const auto end = std::find_if(ranks.begin(), ranks.end(),
                                  [&](int64_t rank) { return target_.StageOf(rank) != stage; });
    return static_cast<size_t>(end - ranks.begin());
  }

  // Plans the first of `ranks`; the others are going to be. The files that these need are indexed
  // meanwhile: to plan keeps one thread busy, and no disk.
  Status PlanOne(std::span<const int64_t> ranks) {
    target_.IndexSources(ranks, IndexersNow(), stop_);
    if (stop_.stop_requested()) return CancelledError("stopped while planning");
    std::optional<Result<PlanSums>> sums;
    const Indexers indexers = IndexersNow();
    const auto work = [&](size_t task, const std::stop_token& stop) -> Status {
      if (task == 0) {
        sums = SumsOf(target_, ranks.front(), visit_, MostKept(1), findings_);
        return sums->status();
      }
      target_.IndexSources(ranks.subspan(1), indexers, stop);
      return {};
    };
    const bool is_last = ranks.size() == 1;
    RESHARD_RETURN_IF_ERROR(RunWorkers(2, is_last || indexers.workers == 1 ? 1 : 2, work, stop_));
    Add(**std::move(sums));
    return CheckMemory(source_.tensors().memory());
  }

  // A rank that fails, or contradicts an earlier rank, is planned again in its turn to report that.
  Status PlanTogether(std::span<const int64_t> ranks, size_t workers) {
    struct Planned {
      PlanFindings findings;
      std::optional<PlanSums> sums;
    };
    std::vector<Planned> all(ranks.size());
    const uint64_t most_kept = MostKept(ranks.size());
    const auto plan = [&](size_t i, const std::stop_token& /*stop*/) {
      all[i].findings.earlier = &findings_;
      Result<PlanSums> made = SumsOf(target_, ranks[i], {}, most_kept, all[i].findings);
      if (made.ok()) all[i].sums = *std::move(made);
      return Status();
    };
    // To index encrypted files may take long, as tags are checked: the threads share each rank's.
    for (size_t i = 0; source_.files().key() != nullptr && i < ranks.size(); ++i) {
      target_.IndexSources(ranks.subspan(i), {workers, workers}, stop_);
    }
    static_cast<void>(RunWorkers(workers, ranks.size(), plan, stop_));
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (stop_.stop_requested()) return CancelledError("stopped while planning");
      if (all[i].sums && findings_.Append(all[i].findings)) {
        Add(*std::move(all[i].sums));
      } else {
        RESHARD_RETURN_IF_ERROR(PlanOne(ranks.subspan(i)));
      }
    }
    return CheckMemory(source_.tensors().memory());
  }

  void Add(PlanSums sums) {
    for (const FileId id : sums.sources) {
      const auto chosen = chosen_.find(id);
      if (chosen == chosen_.end()) continue;  // a companion, which is of no rank
      const ChosenFile* const file = chosen->second;
      used_.emplace(file->rank, file);
      sums.target.source_ranks.push_back(file->rank);
    }
    std::sort(sums.target.source_ranks.begin(), sums.target.source_ranks.end());
    if (sums.target.runs != 0) {
      work_.shortest_run =
          work_.runs == 0 ? sums.shortest_run : std::min(work_.shortest_run, sums.shortest_run);
    }
    work_.longest_run = std::max(work_.longest_run, sums.longest_run);
    work_.runs += sums.target.runs;
    work_.bytes_read += sums.bytes_read;
    work_.bytes_written += sums.target.size;
    work_.largest_plan_bytes = std::max(work_.largest_plan_bytes, sums.plan_bytes);
    work_.largest_step_bytes = std::max(work_.largest_step_bytes, sums.step_bytes);
    if (sums.plan) {
      kept_.Add(sums.target.rank, std::make_shared<const TargetPlan>(*std::move(sums.plan)),
                sums.plan_bytes);
    }
    work_.targets.push_back(std::move(sums.target));
  }

  const OpenedSource& source_;
  const Target& target_;
  const MemoryBudget& budget_;
  const std::stop_token& stop_;
  const PlanVisitor& visit_;
  PlanFindings& findings_;
  WorkList& work_;
  PlanCache& kept_;
  const size_t askers_;
  std::map<FileId, const ChosenFile*> chosen_;
  std::map<int64_t, const ChosenFile*> used_;  // by rank
};

constexpr size_t kLargest = 5;

// All parameters, the largest first.
std::vector<TensorInfo> BySize(const PlanFindings& findings) {
  std::vector<TensorInfo> all;
  for (const auto& [name, parameter] : findings.parameters) {
    all.push_back(
        {name, parameter.kind, parameter.target_dtype, parameter.full_shape, parameter.bytes});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return all;
}

// The largest parameters with distinct shapes, sorted by size. An optimizer's copies have the
// shapes of their parameters.
std::vector<TensorInfo> LargestShapes(const std::vector<TensorInfo>& all,
                                      const PlanFindings& findings) {
  const auto is_own = [&findings](const TensorInfo& parameter) {
    return OptimizerGroup(findings.parameters.at(parameter.name).source_name).empty();
  };
  const bool any_own = std::any_of(all.begin(), all.end(), [&](const TensorInfo& parameter) {
    return is_own(parameter) && ElementCount(parameter.shape).value_or(0) > 1;
  });
  std::vector<TensorInfo> chosen;
  for (const TensorInfo& parameter : all) {
    if (chosen.size() == kLargest) break;
    const bool seen = std::any_of(chosen.begin(), chosen.end(), [&](const TensorInfo& other) {
      return other.shape == parameter.shape;
    });
    if (!seen && (is_own(parameter) || !any_own)) chosen.push_back(parameter);
  }
  return chosen;
}

// Models that transformers loads have no optimizer states.
void AddNoteOfStates(const PlanFindings& findings, std::vector<std::string>& notes) {
  FirstFew states;
  uint64_t bytes = 0;
  for (const auto& [name, parameter] : findings.parameters) {
    if (ElementCount(parameter.full_shape).value_or(0) <= 1) continue;  // as the totals count
    if (OptimizerGroup(parameter.source_name).empty()) continue;
    states.Add(Quote(name));
    bytes += parameter.bytes;
  }
  if (states.count() == 0) return;
  notes.push_back(fmt::format(
      "{} of {} parameters are optimizer states ({}), which transformers does not load: {}; "
      "`weights_only` leaves them out",
      states.count(), findings.parameters.size(), FormatBytes(bytes), states.Joined()));
}

// In a folder for transformers, names of MindFormers have no meaning.
Status AddNoteOfNames(const PlanFindings& findings, std::vector<std::string>& notes) {
  std::string best;
  FirstFew fitting;
  for (const std::string& rules : AllNameRules()) {
    if (!rules.ends_with(kToHuggingFace)) continue;
    const Renaming renaming({.rules = rules});
    FirstFew names;
    for (const auto& [name, parameter] : findings.parameters) {
      RESHARD_ASSIGN_OR_RETURN(const bool changes, Changes(renaming, name));
      if (changes) names.Add(Quote(name));
    }
    if (names.count() <= fitting.count()) continue;
    best = rules;
    fitting = std::move(names);
  }
  if (fitting.count() == 0) return {};
  notes.push_back(
      fmt::format("{} parameters have names of MindFormers, which transformers does not know: {}; "
                  "`name_rules` {} gives them the names of Hugging Face",
                  fitting.count(), fitting.Joined(), best));
  return {};
}

std::optional<FolderFamily> FamilyOf(const std::optional<TargetFormat>& format) {
  if (format == TargetFormat::kUnified) return FolderFamily::kUnified;
  if (format == TargetFormat::kHuggingFace) return FolderFamily::kHuggingFace;
  return std::nullopt;
}

// The place of a parameter in MindSpore's unified_safetensors.
UnifiedPlace PlaceOf(const OpenedSource& source, std::string_view name) {
  if (name.starts_with("accu_grads")) return UnifiedPlace::kNowhere;
  const Strategy* const strategy = source.rule().source();
  if (strategy != nullptr) {
    return strategy->Contains(name) ? UnifiedPlace::kPart : UnifiedPlace::kHyperParam;
  }
  return source.index() && source.IsBeside(name) ? UnifiedPlace::kHyperParam : UnifiedPlace::kPart;
}

}  // namespace

SourceLimits LimitsOf(const ConvertOptions& options, const MemoryBudget& budget) {
  return {
      .table_bytes = budget.index_bytes,
      .window_bytes = budget.window_bytes,
      .header_bytes = budget.header_bytes,
      .access = options.io.source,
      .stop = options.run.stop,
      .lone_parts = options.checks.partial ? LoneParts::kTaken : LoneParts::kRefusedUnlessPartial,
      .memory = CheckOf(budget),
      .pages = budget.measured->pages};
}

const Container& TargetContainer(const OpenedSource& source, const TargetSpec& target) {
  return target.format ? ContainerOf(*target.format) : WrittenAs(source.container());
}

uint64_t MostFileBytes(const TargetSpec& target) {
  return target.format == TargetFormat::kUnified ? target.part_size : target.shard_size;
}

Result<ConversionTarget> MakeTarget(const OpenedSource& source, const TargetSpec& spec,
                                    const Selection& selection) {
  RESHARD_RETURN_IF_ERROR(CheckFormat(spec, selection));
  if (spec.encryption && !TargetContainer(source, spec).may_be_encrypted) {
    return InvalidArgumentError(
        "`encryption` is for .ckpt files, and the outputs would be safetensors files: add "
        "`format=ckpt`");
  }
  RESHARD_ASSIGN_OR_RETURN(std::string names, PatternOfNames(spec, source.step()));
  ConversionTarget target;
  auto ranks = std::make_unique<MindSporeTarget>(
      source.tensors(), source.rule(), spec.prefix,
      selection.unmatched.value_or(Selection::Unmatched::kCopy), ChoiceOf(selection),
      TargetContainer(source, spec), std::move(names));
  ranks->set_removes_redundancy(spec.removes_redundancy);
  target.ranks = std::move(ranks);
  if (source.rule().stage_alone() && !spec.names.empty()) {
    return InvalidArgumentError("`names`: is not for one stage alone, whose files end in _partN");
  }
  const std::optional<FolderFamily> family = FamilyOf(spec.format);
  if (!family) return target;
  if (const auto stage = source.rule().stage_alone()) {
    return MismatchError(
        fmt::format("stage {} alone is not all of a model, as a folder of full tensors is; give "
                    "the strategies and files of all stages",
                    *stage));
  }
  FullLayout layout{*family, MostFileBytes(spec), {}, {}};
  if (layout.family == FolderFamily::kUnified) {
    layout.place = [&source](std::string_view name) { return PlaceOf(source, name); };
    layout.states_redundancy = [&source] { return source.states_redundancy(); };
  }
  RESHARD_ASSIGN_OR_RETURN(target.folder, FullTarget::Make(*target.ranks, layout));
  return target;
}

Result<ExtraFile> StrategyFileOf(const Strategy& strategy, const ParameterChoice& choice) {
  RESHARD_ASSIGN_OR_RETURN(const Strategy renamed, WithNewNames(strategy, choice.renaming()));
  RESHARD_ASSIGN_OR_RETURN(std::string bytes, EncodeStrategy(renamed, StrategyEncoding::kProtobuf));
  return ExtraFile{.path = std::string(kStrategyFilePath),
                   .kind = FileKind::kStrategy,
                   .literal = std::move(bytes)};
}

std::vector<ExtraFile> MetaFilesOf(const OpenedSource& source, const TargetSpec& spec,
                                   const Target& ranks) {
  std::vector<ExtraFile> files;
  if (!HasMindFormersNames(spec)) return files;
  for (int64_t rank = 0; rank < ranks.rank_files(); ++rank) {
    files.push_back({.path = MetaPath(rank),
                     .kind = FileKind::kResume,
                     .rank = rank,
                     .literal = MetaOf(*source.step(), ranks.PathOf(rank))});
  }
  return files;
}

std::vector<int64_t> RanksOf(const Target& target, std::span<const int64_t> files) {
  std::set<int64_t> ranks;
  for (const int64_t file : files) ranks.insert(target.RankOf(file));
  return {ranks.begin(), ranks.end()};
}

Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const ConvertOptions& options, const MemoryBudget& budget,
                                      const PlanWatch& watch) {
  const Selection& selection = options.selection;
  const CheckChoice& checks = options.checks;
  const std::stop_token& stop = options.run.stop;
  PlanFindings& findings = watch.findings;
  const std::vector<int64_t> ranks = target.FilesOf(selection.ranks);
  ConversionPlan plan;
  plan.kept = std::make_shared<PlanCache>();
  TargetPlanning planning(source, target, budget, stop, watch, plan);
  RESHARD_RETURN_IF_ERROR(planning.Plan(ranks));
  planning.AddSources();
  if (stop.stop_requested()) return CancelledError("stopped while planning");
  for (const auto& [name, why] : source.Unread()) findings.left_out.insert(name);
  RESHARD_ASSIGN_OR_RETURN(ChoiceFindings choice,
                           FindingsOf(target.choice(), source.rule(), findings));
  Findings& told = plan.findings;
  told.parameters = findings.parameters.size();
  told.left_out = choice.left_out;
  told.renamed = choice.renamed;
  told.largest = BySize(findings);
  told.largest_shapes = LargestShapes(told.largest, findings);
  told.largest.resize(std::min(told.largest.size(), kLargest));
  told.warnings = source.warnings();
  told.notes = source.notes();
  told.source_is_whole = source.files_are_numbered();
  told.step = StepText(source.step());
  for (Warning& warning : choice.warnings) told.warnings.push_back(std::move(warning));
  if (!checks.reference.empty()) {
    RESHARD_RETURN_IF_ERROR(
        CheckReference(checks.reference, source.tensors().files().key(), findings, told.warnings));
  }
  const std::vector<int64_t> target_ranks = RanksOf(target, ranks);
  if (!selection.unmatched) {
    if (!checks.partial) {
      RESHARD_RETURN_IF_ERROR(CheckNames(source.rule(), target_ranks, findings, kUnmatchedAllowed));
    }
    plan.unmatched_matrices = UnmatchedMatrices(source.rule(), target_ranks, findings);
  }
  for (Warning& warning : TakeCopies(source.rule(), target_ranks, findings)) {
    told.warnings.push_back(std::move(warning));
  }
  for (Warning& warning : findings.Warnings()) told.warnings.push_back(std::move(warning));
  if (options.target.format == TargetFormat::kHuggingFace) {
    AddNoteOfStates(findings, told.notes);
    RESHARD_RETURN_IF_ERROR(AddNoteOfNames(findings, told.notes));
  }
  for (std::string& note : findings.Notes()) told.notes.push_back(std::move(note));
  return plan;
}

Result<ConversionPlan> PlanConversion(const OpenedSource& source, const Target& target,
                                      const ConvertOptions& options, const MemoryBudget& budget) {
  PlanFindings findings;
  return PlanConversion(source, target, options, budget, {findings, {}});
}

Result<ConversionPlan> PlanFiles(const OpenedSource& source, const Target& target,
                                 std::span<const int64_t> files, const std::stop_token& stop,
                                 const MemoryBudget& budget) {
  PlanFindings findings;
  ConversionPlan plan;
  plan.kept = std::make_shared<PlanCache>();
  const PlanWatch watch{findings, {}};
  TargetPlanning planning(source, target, budget, stop, watch, plan);
  RESHARD_RETURN_IF_ERROR(planning.Plan(files));
  planning.AddSources();
  if (stop.stop_requested()) return CancelledError("stopped while planning");
  plan.findings.parameters = findings.parameters.size();
  // Its warnings and errors are about all files.
  if (const auto choice = FindingsOf(target.choice(), source.rule(), findings); choice.ok()) {
    plan.findings.left_out = choice->left_out;
    plan.findings.renamed = choice->renamed;
  }
  plan.findings.source_is_whole = source.files_are_numbered();
  plan.findings.step = StepText(source.step());
  return plan;
}

PlanReport ReportOf(ConversionPlan plan) {
  PlanReport report = static_cast<PlanReport&&>(plan.work);
  static_cast<Findings&>(report) = std::move(plan.findings);
  return report;
}

}  // namespace reshard
