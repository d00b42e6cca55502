#include "src/mindspore/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/threads.h"
#include "src/plan/append_parameter.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

PlanNotes::Parameter NoteOf(const SourceTensor& tensor) {
  return {tensor.name,
          tensor.kind,
          tensor.dtype,
          tensor.full_shape,
          TensorBytes(tensor.full_shape, tensor.dtype).value_or(0),
          tensor.file};
}

// What is held of a piece of a shard while copies are made of it.
constexpr size_t kOfPiece = 512;

// Each parameter adds its files: so many are sorted out at a time.
constexpr size_t kSourcesOfPlan = 1024;

void KeepEachOnce(std::vector<FileId>& files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
}

void NoteStatedShape(const ParameterLayout* layout, const Strategy* strategy,
                     const SourceTensor& tensor, PlanNotes& notes) {
  if (layout == nullptr || !layout->tensor_shape || *layout->tensor_shape == tensor.full_shape) {
    return;
  }
  notes.other_shapes.insert(fmt::format("{} {} ({}: {})", Quote(tensor.name),
                                        ToString(tensor.full_shape), Escape(strategy->path()),
                                        FirstNumbers(*layout->tensor_shape)));
}

const ParameterLayout* FindLayout(const Strategy* strategy, int64_t stage, std::string_view name) {
  return strategy == nullptr ? nullptr : strategy->stages()[static_cast<size_t>(stage)].Find(name);
}

}  // namespace

std::string Planner::TargetPath(int64_t rank) const {
  const auto stage = placement_.rule().stage_alone();
  return fmt::format("rank_{}/{}{}{}.ckpt", rank, prefix_, rank,
                     stage ? fmt::format("_part{}", *stage) : "");
}

Result<TargetPlan> Planner::PlanTarget(int64_t rank, PlanNotes& notes,
                                       const SegmentVisitor& visit) const {
  std::optional<Recipe> own;
  RESHARD_ASSIGN_OR_RETURN(const Recipe* recipe, RecipeOf(rank, notes, own));
  if (!notes.silent) notes.AddFindings(recipe->findings);
  TargetPlan plan;
  plan.rank = rank;
  plan.path = TargetPath(rank);
  // Mostly a header and a content each.
  if (!visit)
    plan.segments.reserve(2 * (recipe->converted.size() + recipe->selection.copied.size()));
  size_t seen = 0;       // segments
  uint64_t checked = 0;  // copies and segments, when the memory was checked
  uint64_t made = 0;
  size_t most_sources = kSourcesOfPlan;
  const auto added = [&]() -> Status {
    for (; seen < plan.segments.size(); ++seen) {
      const auto* const content = std::get_if<Content>(&plan.segments[seen]);
      made += content == nullptr ? 1 : content->copies.size();
      if (visit) visit(plan.segments[seen]);
    }
    if (visit) {
      plan.segments.clear();
      plan.names = {};
      seen = 0;
    }
    if (plan.sources.size() > most_sources) {
      KeepEachOnce(plan.sources);
      most_sources = 2 * plan.sources.size() + kSourcesOfPlan;
    }
    if (made - checked < kMemoryCheckInterval) return {};
    checked = made;
    return CheckMemory(sources_.memory());
  };
  for (size_t i = 0; i < recipe->converted.size(); ++i) {
    RESHARD_RETURN_IF_ERROR(
        AddConverted(recipe->converted[i], rank, recipe->selection, plan, notes));
    RESHARD_RETURN_IF_ERROR(added());
  }
  for (const std::string& name : recipe->selection.copied) {
    RESHARD_RETURN_IF_ERROR(AddCopied(name, rank, recipe->selection, plan, notes));
    RESHARD_RETURN_IF_ERROR(added());
  }
  if (plan.parameters == 0) notes.empty_files.insert(plan.path);
  KeepEachOnce(plan.sources);
  return plan;
}

void Planner::IndexSources(int64_t rank, size_t workers, const std::stop_token& stop) const {
  if (workers == 1) return;  // PlanTarget does as much
  const auto stage = StageOf(rank);
  if (!stage.ok()) return;
  std::vector<RankLists::Source> sources = (*stage)->needed.SourcesOf(rank);
  std::erase_if(sources, [this](const RankLists::Source& source) {
    return !sources_.HasNewFile(source.stage, source.local);
  });
  if (sources.size() < 2) return;
  const auto index = [&](size_t task, const std::stop_token& /*stop*/) {
    return sources_.TableOf(sources[task].stage, sources[task].local).status();
  };
  static_cast<void>(RunWorkers(workers, sources.size(), index, stop));
}

Result<Planner::Stage*> Planner::StageOf(int64_t rank) const {
  RESHARD_RETURN_IF_ERROR(CheckTargetRank(placement_.rule(), rank));
  const int64_t number = placement_.rule().TargetStage(rank);
  const std::lock_guard lock(mutex_);
  const auto known = stages_.find(number);
  if (known != stages_.end()) return &known->second;
  RESHARD_ASSIGN_OR_RETURN(RankLists needed, RankLists::Make(placement_.rule(), number));
  return &stages_.emplace(number, Stage{std::move(needed), {}, {}}).first->second;
}

Result<const Planner::Recipe*> Planner::RecipeOf(int64_t rank, PlanNotes& notes,
                                                 std::optional<Recipe>& own) const {
  RESHARD_ASSIGN_OR_RETURN(Stage* const stage, StageOf(rank));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<uint64_t> tables, CommonTables(*stage, rank));
  {
    const std::lock_guard lock(mutex_);
    if (stage->recipe && stage->tables == tables) return &*stage->recipe;
  }
  RESHARD_ASSIGN_OR_RETURN(own, MakeRecipe(rank, notes));
  const std::lock_guard lock(mutex_);
  // The first one stays for good: others may be using it. Ranks that are planned together leave
  // none, so that it is not left to chance which that is.
  if (tables.empty() || stage->recipe || notes.earlier != nullptr) return &*own;
  stage->tables = tables;
  stage->recipe = std::move(own);
  return &*stage->recipe;
}

Result<std::vector<uint64_t>> Planner::CommonTables(const Stage& stage, int64_t rank) const {
  std::vector<uint64_t> tables;
  int64_t last = -1;
  for (const auto& [source_stage, local] : stage.needed.SourcesOf(rank)) {
    RESHARD_ASSIGN_OR_RETURN(const uint64_t table, sources_.TableOf(source_stage, local));
    if (table == 0) return std::vector<uint64_t>();
    if (source_stage != last) tables.push_back(table);
    if (tables.back() != table) return std::vector<uint64_t>();
    last = source_stage;
  }
  return tables;
}

Result<Planner::Recipe> Planner::MakeRecipe(int64_t rank, PlanNotes& notes) const {
  const ConversionRule& rule = placement_.rule();
  const int64_t stage = rule.TargetStage(rank);
  Recipe recipe;
  RESHARD_ASSIGN_OR_RETURN(recipe.selection, Select(rank, recipe.findings));
  const std::vector<std::string> names = std::exchange(recipe.selection.converted, {});
  for (const std::string& name : names) {
    RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor, sources_.Describe(name, rule.CopyRank(rank)));
    // Before the target's layout is asked, whose words on another full shape would say less. What
    // is new is noted behind all these, so that notes and recipe do not lie in the same pages.
    if (notes.Find(choice_.TargetName(tensor.name)) != nullptr) {
      RESHARD_RETURN_IF_ERROR(NoteConverted(tensor, notes));
    }
    const ParameterLayout* layout = FindLayout(rule.target(), stage, name);
    CutParameter converted{std::move(tensor), WholeGrid(0), {}};
    if (converted.tensor.kind == ArrayKind::kTensor) {
      const SourceTensor& found = converted.tensor;
      NoteStatedShape(FindLayout(rule.source(), found.stage, name), rule.source(), found,
                      recipe.findings);
      NoteStatedShape(layout, rule.target(), found, recipe.findings);
      RESHARD_RETURN_IF_ERROR(Cut(layout, converted));
    }
    recipe.converted.push_back(converted);
    if (recipe.converted.size() % kMemoryCheckInterval == 0) {
      RESHARD_RETURN_IF_ERROR(CheckMemory(sources_.memory()));
    }
  }
  for (size_t i = 0; i < recipe.converted.size(); ++i) {
    RESHARD_RETURN_IF_ERROR(NoteConverted(recipe.converted[i].tensor, notes));
  }
  return recipe;
}

// Says how the target cuts a tensor.
Status Planner::Cut(const ParameterLayout* layout, CutParameter& converted) const {
  const SourceTensor& tensor = converted.tensor;
  converted.grid = WholeGrid(tensor.full_shape.size());
  converted.shard_shape = tensor.full_shape;
  if (layout == nullptr) return {};
  const std::string where = fmt::format(
      "{}: parameter {}", Escape(placement_.rule().target()->path()), Quote(tensor.name));
  RESHARD_ASSIGN_OR_RETURN(converted.grid, grids_.Get(*layout, tensor.full_shape.size(), where));
  auto shard_shape = converted.grid->ShardShape(tensor.full_shape, where);
  if (!shard_shape.ok()) {
    return MismatchError(
        fmt::format("{}; the full shape follows from the source's shards and "
                    "strategy: are the two strategies swapped?",
                    shard_shape.status().message()));
  }
  converted.shard_shape = *std::move(shard_shape);
  return {};
}

Result<const PlanNotes::Parameter*> Planner::Note(const SourceTensor& tensor,
                                                  PlanNotes& notes) const {
  const std::string& target_name = choice_.TargetName(tensor.name);
  const PlanNotes::Parameter* known = notes.Find(target_name);
  if (known == nullptr) {
    known = &notes.parameters.emplace(target_name, NoteOf(tensor)).first->second;
  }
  if (known->source_name == tensor.name) return known;
  return MismatchError(
      fmt::format("the parameters {} and {} would both be written as {}; rename one of them "
                  "otherwise, or leave it out with --exclude",
                  Quote(known->source_name), Quote(tensor.name), Quote(target_name)));
}

Status Planner::NoteConverted(const SourceTensor& tensor, PlanNotes& notes) const {
  if (notes.silent) return {};
  RESHARD_ASSIGN_OR_RETURN(const PlanNotes::Parameter* const found, Note(tensor, notes));
  const PlanNotes::Parameter& known = *found;
  if (known.dtype == tensor.dtype && known.full_shape == tensor.full_shape) return {};
  return MismatchError(fmt::format(
      "{}: by this file it is {} {} in full, but {} {} by another: {}; are these ranks of one "
      "checkpoint?",
      sources_.Where(tensor.file, tensor.name), DTypeName(tensor.dtype),
      ToString(tensor.full_shape), DTypeName(known.dtype), ToString(known.full_shape),
      sources_.Where(known.file, tensor.name)));
}

Status Planner::AddConverted(const CutParameter& converted, int64_t rank,
                             const Selection& selection, TargetPlan& plan, PlanNotes& notes) const {
  const ConversionRule& rule = placement_.rule();
  const SourceTensor& tensor = converted.tensor;
  RESHARD_RETURN_IF_ERROR(NoteConverted(tensor, notes));
  if (tensor.kind != ArrayKind::kTensor) {
    return AddCopied(tensor.name, rank, selection, plan, notes);
  }
  const Box box = converted.grid->BoxOf(rule.TargetLocalRank(rank), converted.shard_shape);
  RESHARD_ASSIGN_OR_RETURN(const auto shards, sources_.Cover(tensor, box, rule.CopyRank(rank)));
  size_t pieces = 0;
  for (const PlacedPiece& shard : shards) pieces += 1 + shard.content.size();
  const uint64_t making = pieces * kOfPiece;
  if (pieces >= kMemoryCheckInterval) {
    RESHARD_RETURN_IF_ERROR(CheckMemory(sources_.memory(), making));
  }
  plan.making_bytes = std::max(plan.making_bytes, making);
  return AppendTensor(tensor, choice_.TargetName(tensor.name), shards, box, box.extent, plan);
}

Status Planner::CheckCopied(const SourceTensor& tensor, PlanNotes& notes) const {
  const ConversionRule& rule = placement_.rule();
  if (tensor.kind != ArrayKind::kTensor || ElementCount(tensor.full_shape).value_or(0) <= 1 ||
      rule.Unmatched(tensor.name)) {
    return {};
  }
  const auto cuts_others = [&tensor](const Strategy* strategy, int64_t devices) {
    return strategy != nullptr && devices > 1 && !strategy->Contains(tensor.name);
  };
  const bool of_source = cuts_others(rule.source(), rule.source_devices());
  if (!of_source && !cuts_others(rule.target(), rule.target_devices())) return {};
  if (unmatched_ == UnmatchedPolicy::kError) {
    return MismatchError(
        fmt::format("parameter {} {} {} has no layout in the {} strategy; --unmatched copy {}",
                    Quote(tensor.name), DTypeName(tensor.dtype), ToString(tensor.full_shape),
                    of_source ? "source" : "target",
                    of_source ? "takes it from one source rank as if it had the full tensor"
                              : "writes it in full for each rank"));
  }
  (of_source ? notes.not_in_source_strategy : notes.not_in_target_strategy)
      .insert(Quote(tensor.name));
  return {};
}

Status Planner::AddCopied(const std::string& name, int64_t rank, const Selection& selection,
                          TargetPlan& plan, PlanNotes& notes) const {
  RESHARD_ASSIGN_OR_RETURN(
      const SourceTensor tensor,
      sources_.FindWhole(name, selection.stages, placement_.rule().CopyRank(rank)));
  const std::string& target_name = choice_.TargetName(name);
  if (!notes.silent) {
    RESHARD_RETURN_IF_ERROR(Note(tensor, notes).status());
    PlanNotes::Parameter& noted = notes.parameters[target_name];
    noted = NoteOf(tensor);
    noted.copied = true;
    RESHARD_RETURN_IF_ERROR(CheckCopied(tensor, notes));
  }
  if (tensor.kind != ArrayKind::kTensor) {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, sources_.IndexOf(tensor));
    return AppendWholeValues(*index->Find(name), target_name, tensor.file, plan);
  }
  const Box box = Box::Whole(tensor.full_shape);
  RESHARD_ASSIGN_OR_RETURN(const auto pieces, sources_.Cover(tensor, box, 0));
  return AppendTensor(tensor, target_name, pieces, box, box.extent, plan);
}

}  // namespace reshard
