#include "src/mindspore/mindspore_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "format/container/common_metadata.h"
#include "format/container/container.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/threads.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// The allocator's own bytes for each allocation.
constexpr uint64_t kOfAllocation = 2 * sizeof(void*);

uint64_t NextRecipe() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

PlanFindings::Parameter NoteOf(const SourceTensor& tensor, DType target_dtype) {
  return {tensor.name,
          tensor.kind,
          tensor.dtype,
          tensor.full_shape,
          TensorBytes(tensor.full_shape, target_dtype).value_or(0),
          tensor.file,
          false,
          target_dtype};
}

void NoteStatedShape(const ParameterLayout* layout, const Strategy* strategy,
                     const SourceTensor& tensor, PlanFindings& findings) {
  if (layout == nullptr || !layout->tensor_shape || *layout->tensor_shape == tensor.full_shape) {
    return;
  }
  findings.other_shapes.insert(fmt::format("{} {} ({}: {})", Quote(tensor.name),
                                           ToString(tensor.full_shape), Escape(strategy->path()),
                                           FirstNumbers(*layout->tensor_shape)));
}

const ParameterLayout* FindLayout(const Strategy* strategy, int64_t stage, std::string_view name) {
  return strategy == nullptr ? nullptr : strategy->stages()[static_cast<size_t>(stage)].Find(name);
}

// Says that `array` is one box of its tensor.
void SetBox(const Box& box, TargetArray& array) {
  array.shape = box.extent;
  Piece& piece = std::get<Pieces>(array.content).pieces.front();
  piece.tensor = 0;
  piece.place.begin.assign(box.extent.size(), 0);
  piece.place.extent = box.extent;
  piece.box = box;
}

}  // namespace

Status CheckNamePattern(const std::string& pattern) {
  const auto wrong = [&](std::string_view why) {
    return InvalidArgumentError(fmt::format("`names`: {} {}; expected a pattern such as {}",
                                            Quote(pattern), why, kDefaultNames));
  };
  constexpr size_t kLongest = 1000;
  if (pattern.size() > kLongest || IsUnfitForNames(pattern)) {
    return wrong("is too long, or has backslashes, quotes or control characters");
  }
  if (pattern.find("{rank}") == std::string::npos) return wrong("lacks {rank}");
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '}') return wrong("has an unmatched brace");
    if (pattern[i] != '{') continue;
    const size_t end = pattern.find('}', i);
    const std::string word = pattern.substr(i, end == std::string::npos ? end : end - i + 1);
    if (word != "{rank}" && word != "{prefix}" && word != "{ext}") {
      return wrong("has braces around something other than rank, prefix or ext");
    }
    i = end;
  }
  for (size_t begin = 0; begin <= pattern.size();) {
    const size_t end = std::min(pattern.find('/', begin), pattern.size());
    const std::string part = pattern.substr(begin, end - begin);
    if (part.empty() || part.front() == '.') {
      return wrong("has a part that is empty or begins with a dot");
    }
    begin = end + 1;
  }
  return {};
}

void CutParameters::Add(const SourceTensor& tensor, const SharedGrid& grid,
                        const Shape& shard_shape) {
  const auto form =
      forms_.insert({tensor.kind, tensor.dtype, tensor.full_shape, tensor.shard_shape, tensor.stage,
                     tensor.table, tensor.grid, tensor.rank, grid, shard_shape});
  entries_.push_back({names_.Keep(tensor.name), &*form.first, tensor.file,
                      static_cast<uint32_t>(tensor.content.size()), ranges_.size()});
  ranges_.insert(ranges_.end(), tensor.content.begin(), tensor.content.end());
}

uint64_t CutParameters::MakingBytes() const {
  // A vector that grows is there twice, and the names were a list of strings before.
  const uint64_t names = names_.memory() + entries_.size() * (sizeof(std::string) + kOfAllocation);
  return 3 * (entries_.size() * sizeof(Entry) + ranges_.size() * sizeof(ByteRange)) / 2 + 2 * names;
}

void CutParameters::GetTensor(size_t place, SourceTensor& tensor) const {
  const Entry& entry = entries_[place];
  tensor.name = entry.name;
  tensor.file = entry.file;
  const ByteRange* const ranges = ranges_.data() + entry.first_range;
  tensor.content.assign(ranges, ranges + entry.ranges);
  const Form& form = *entry.form;
  tensor.kind = form.kind;
  tensor.dtype = form.dtype;
  tensor.full_shape = form.full_shape;
  tensor.shard_shape = form.shard_shape;
  tensor.stage = form.stage;
  tensor.table = form.table;
  tensor.grid = form.grid;
  tensor.rank = form.rank;
}

std::string MindSporeTarget::PathOf(int64_t file) const {
  if (!names_.empty()) {
    return fmt::format(fmt::runtime(names_), fmt::arg("rank", file), fmt::arg("prefix", prefix_),
                       fmt::arg("ext", container_.extension.substr(1)));
  }
  const auto stage = rule_.stage_alone();
  return fmt::format("rank_{}/{}{}{}{}", file, prefix_, file,
                     stage ? fmt::format("_part{}", *stage) : "", container_.extension);
}

Result<TargetFile> MindSporeTarget::MakeFile(int64_t rank, PlanFindings& findings) const {
  RESHARD_ASSIGN_OR_RETURN(std::shared_ptr<const Recipe> recipe, RecipeOf(rank, findings));
  if (!findings.silent) findings.AddFindings(recipe->findings);
  TargetFile file;
  file.container = &container_;
  file.metadata = recipe->metadata;
  if (removes_redundancy_) file.metadata.removes_redundancy = true;
  RESHARD_ASSIGN_OR_RETURN(std::optional<std::vector<size_t>> places, PlacesOf(*recipe, rank));
  const size_t converted = places ? places->size() : recipe->converted.size();
  file.arrays = converted + recipe->selection.copied.size();
  file.near = rule_.CopyRank(rank);
  if (recipe.use_count() == 1) {  // else it is there already
    file.making_bytes =
        recipe->converted.MakingBytes() + recipe->numbers.size() * sizeof(recipe->numbers[0]);
    for (const std::string& name : recipe->selection.copied) {
      file.making_bytes += 2 * (sizeof(std::string) + name.size() + kOfAllocation);
    }
  }
  if (places) file.making_bytes += places->size() * sizeof(size_t);
  if (file.arrays == 0) findings.empty_files.insert(PathOf(rank));
  file.make = [this, rank, converted, recipe = std::move(recipe), places = std::move(places),
               &findings, box = LastBox()](size_t number, TargetArray& array) mutable {
    if (number < converted) {
      const size_t place = places ? (*places)[number] : number;
      return MakeConverted(*recipe, place, rank, findings, box, array);
    }
    return MakeCopied(*recipe, recipe->selection.copied[number - converted], rank, findings, array);
  };
  return file;
}

std::vector<RankLists::Source> MindSporeTarget::NewSources(std::span<const int64_t> ranks,
                                                           size_t enough) const {
  std::vector<RankLists::Source> sources;
  if (source().placement().all_tensors() != nullptr) return sources;  // parts say which are needed
  std::set<RankLists::Source> seen;
  for (const int64_t rank : ranks.first(std::min(ranks.size(), enough))) {
    const auto stage = FindStage(rank);
    if (!stage.ok()) break;
    for (const RankLists::Source& needed : (*stage)->needed.SourcesOf(rank)) {
      const bool is_new = source().HasNewFile(needed.stage, needed.local);
      if (is_new && seen.insert(needed).second) sources.push_back(needed);
    }
    if (sources.size() >= enough) break;
  }
  return sources;
}

void MindSporeTarget::IndexSources(std::span<const int64_t> ranks, const Indexers& indexers,
                                   const std::stop_token& stop) const {
  if (indexers.workers == 1) return;  // MakeFile does as much
  const auto index = [&](std::span<const RankLists::Source> files, size_t threads) {
    const auto index_one = [&](size_t task, const std::stop_token& /*stop*/) {
      return source().TableIdOf(files[task].stage, files[task].local).status();
    };
    static_cast<void>(RunWorkers(threads, files.size(), index_one, stop));
  };
  const std::vector<RankLists::Source> sources = NewSources(ranks, indexers.workers);
  if (sources.size() < 2) return;
  const std::span<const RankLists::Source> all = sources;
  const size_t first = std::min(all.size(), indexers.workers);
  index(all.first(first), indexers.workers);
  // These files tell whether the others are waited for. A file that could not be read does not
  // tell.
  const auto are_waited_for = [&](const RankLists::Source& file) {
    if (source().HasNewFile(file.stage, file.local)) return false;
    const auto known = source().TableOf(file.stage, file.local);
    return known.ok() && (*known)->IsWaitedFor();
  };
  if (indexers.waiting > indexers.workers && are_waited_for(all.front())) {
    index(NewSources(ranks, indexers.waiting), indexers.waiting);
  } else {
    index(all.subspan(first), indexers.workers);
  }
}

Result<MindSporeTarget::Stage*> MindSporeTarget::FindStage(int64_t rank) const {
  RESHARD_RETURN_IF_ERROR(CheckTargetRank(rule_, rank));
  const int64_t number = rule_.TargetStage(rank);
  const std::lock_guard lock(mutex_);
  const auto known = stages_.find(number);
  if (known != stages_.end()) return &known->second;
  RESHARD_ASSIGN_OR_RETURN(RankLists needed, RankLists::Make(rule_, number));
  std::optional<SingleHolders> holders;
  if (removes_redundancy_ && rule_.target() != nullptr) {
    const Strategy::Stage& layouts = rule_.target()->stages()[static_cast<size_t>(number)];
    RESHARD_ASSIGN_OR_RETURN(holders, SingleHolders::Make(layouts, choice(), source().memory()));
  }
  return &stages_.emplace(number, Stage{std::move(needed), std::move(holders), {}, {}})
              .first->second;
}

Result<std::optional<std::vector<size_t>>> MindSporeTarget::PlacesOf(const Recipe& recipe,
                                                                     int64_t rank) const {
  std::optional<std::vector<size_t>> places;
  RESHARD_ASSIGN_OR_RETURN(const Stage* const stage, FindStage(rank));
  if (!stage->holders) return places;
  const std::vector<bool> kept = stage->holders->KeptBy(rule_.TargetLocalRank(rank));
  places.emplace();
  for (size_t place = 0; place < recipe.numbers.size(); ++place) {
    const size_t number = recipe.numbers[place];
    if (number == kEachRank || kept[number]) places->push_back(place);
  }
  return places;
}

Result<std::shared_ptr<const MindSporeTarget::Recipe>> MindSporeTarget::RecipeOf(
    int64_t rank, PlanFindings& findings) const {
  RESHARD_ASSIGN_OR_RETURN(Stage* const stage, FindStage(rank));
  RESHARD_ASSIGN_OR_RETURN(const std::vector<uint64_t> tables, CommonTables(*stage, rank));
  {
    const std::lock_guard lock(mutex_);
    if (stage->recipe && stage->tables == tables) return stage->recipe;
  }
  RESHARD_ASSIGN_OR_RETURN(Recipe made, MakeRecipe(rank, findings));
  auto own = std::make_shared<const Recipe>(std::move(made));
  const std::lock_guard lock(mutex_);
  // The first one stays for good: others may be using it. Ranks that are planned together leave
  // none, so that it is not left to chance which that is.
  if ((tables.empty() && files() > 1) || stage->recipe || findings.earlier != nullptr) return own;
  stage->tables = tables;
  stage->recipe = std::move(own);
  return stage->recipe;
}

Result<std::vector<uint64_t>> MindSporeTarget::CommonTables(const Stage& stage,
                                                            int64_t rank) const {
  if (source().placement().all_tensors() != nullptr) return std::vector<uint64_t>{0};  // no table
  std::vector<uint64_t> tables;
  int64_t last = -1;
  for (const auto& [source_stage, local] : stage.needed.SourcesOf(rank)) {
    RESHARD_ASSIGN_OR_RETURN(const uint64_t table, source().TableIdOf(source_stage, local));
    // All ranks need all files of a folder.
    if (source().ranks().is_folder) return std::vector<uint64_t>{table};
    if (table == 0) return std::vector<uint64_t>();
    if (source_stage != last) tables.push_back(table);
    if (tables.back() != table) return std::vector<uint64_t>();
    last = source_stage;
  }
  return tables;
}

Result<MindSporeTarget::Recipe> MindSporeTarget::MakeRecipe(int64_t rank,
                                                            PlanFindings& findings) const {
  const int64_t stage = rule_.TargetStage(rank);
  Recipe recipe;
  recipe.number = NextRecipe();
  RESHARD_ASSIGN_OR_RETURN(const Stage* const of_stage, FindStage(rank));
  const std::optional<SingleHolders>& holders = of_stage->holders;
  RESHARD_ASSIGN_OR_RETURN(recipe.selection, Select(rank, recipe.findings));
  RESHARD_RETURN_IF_ERROR(TakeMetadata(rank, recipe));
  const std::vector<std::string> names = std::exchange(recipe.selection.converted, {});
  size_t next = 0;
  for (const std::string& name : names) {
    RESHARD_ASSIGN_OR_RETURN(const SourceTensor tensor,
                             source().Describe(name, rule_.CopyRank(rank), next));
    // This comes before the check of the target's layout, whose message about another full shape
    // would be poorer. New facts are noted behind all these, so that findings and recipe are in
    // different pages.
    std::string made;
    RESHARD_ASSIGN_OR_RETURN(const std::string* target_name,
                             choice().TargetName(tensor.name, made));
    if (findings.Find(*target_name) != nullptr) {
      RESHARD_RETURN_IF_ERROR(NoteConverted(tensor, findings));
    }
    const ParameterLayout* layout = FindLayout(rule_.target(), stage, name);
    SharedGrid grid = WholeGrid(0);
    Shape shard_shape;
    if (tensor.kind == ArrayKind::kTensor) {
      NoteStatedShape(FindLayout(rule_.source(), tensor.stage, name), rule_.source(), tensor,
                      recipe.findings);
      NoteStatedShape(layout, rule_.target(), tensor, recipe.findings);
      // The words for an error are made only if there is one.
      if (!Cut(layout, tensor, "", grid, shard_shape).ok()) {
        const std::string where =
            fmt::format("{}: parameter {}", Escape(rule_.target()->path()), Quote(tensor.name));
        RESHARD_RETURN_IF_ERROR(Cut(layout, tensor, where, grid, shard_shape));
      }
    }
    recipe.converted.Add(tensor, grid, shard_shape);
    if (holders) {
      const bool takes_turns = tensor.kind == ArrayKind::kTensor;
      recipe.numbers.push_back(takes_turns ? holders->NumberOf(name).value_or(kEachRank)
                                           : kEachRank);
    }
    if (recipe.converted.size() % kMemoryCheckInterval == 0) {
      RESHARD_RETURN_IF_ERROR(CheckMemory(source().memory()));
    }
  }
  SourceTensor tensor;
  for (size_t i = 0; i < recipe.converted.size(); ++i) {
    recipe.converted.GetTensor(i, tensor);
    RESHARD_RETURN_IF_ERROR(NoteConverted(tensor, findings));
  }
  if (!findings.silent) findings.noted_list = recipe.number;
  return recipe;
}

Status MindSporeTarget::TakeMetadata(int64_t rank, Recipe& recipe) const {
  if (source().placement().all_tensors() != nullptr) return {};  // no metadata of tensors
  RESHARD_ASSIGN_OR_RETURN(const Stage* const stage, FindStage(rank));
  CommonMetadata common;
  std::optional<RankLists::Source> first;
  for (const RankLists::Source& needed : stage->needed.SourcesOf(rank)) {
    RESHARD_ASSIGN_OR_RETURN(const auto metadata, source().MetadataOf(needed.stage, needed.local));
    if (metadata == nullptr) continue;
    common.Add(metadata);
    if (!first) first = needed;
  }
  const auto leave_out = [&](const std::set<std::string>& keys) {
    for (const std::string& key : keys) recipe.findings.metadata_left_out.insert(Quote(key));
  };
  if (!container_.has_metadata) {
    leave_out(common.Keys());
    return {};
  }
  leave_out(common.LeftOut());
  std::string format = recipe.metadata.format;
  common.SetOn(recipe.metadata);
  // MindSpore's own, as it writes it, in files that only MindSpore's ranks read.
  if (rule_.target() != nullptr) recipe.metadata.format = std::move(format);
  if (recipe.metadata.others.empty() || (choice().TakesAll() && choice().renames().empty())) {
    return {};
  }
  // Metadata under the name of a tensor is about that one.
  RESHARD_ASSIGN_OR_RETURN(const TableHandle table, source().TableOf(first->stage, first->local));
  FileStrings others;
  for (const auto& [key, value] : recipe.metadata.others) {
    const bool of_tensor = source().HasBeside(*table, key);
    if (of_tensor && !choice().Takes(key)) continue;
    std::string made;
    const std::string* name = &key;
    if (of_tensor) {
      RESHARD_ASSIGN_OR_RETURN(name, choice().TargetName(key, made));
    }
    others.emplace(*name, value);
  }
  recipe.metadata.others = std::move(others);
  return {};
}

Status MindSporeTarget::Cut(const ParameterLayout* layout, const SourceTensor& tensor,
                            std::string_view where, SharedGrid& grid, Shape& shard_shape) const {
  grid = WholeGrid(tensor.full_shape.size());
  shard_shape = tensor.full_shape;
  if (layout == nullptr) return {};
  RESHARD_ASSIGN_OR_RETURN(grid, grids_.Get(*layout, tensor.full_shape.size(), where));
  auto shape = grid->ShardShape(tensor.full_shape, where);
  if (!shape.ok()) {
    const auto& files = source().ranks().files;
    const std::string hint =
        files.empty() ? std::string()
                      : SwapHint(rule_, files.begin()->first, files.rbegin()->first, files.size());
    return MismatchError(fmt::format(
        "{}; the full shape follows from the source's shards and strategy: {}",
        shape.status().message(),
        hint.empty() ? "is the target strategy one of this model, and the source strategy the one "
                       "that the checkpoint was saved with?"
                     : hint));
  }
  shard_shape = *std::move(shape);
  return {};
}

Result<const PlanFindings::Parameter*> MindSporeTarget::Note(const SourceTensor& tensor,
                                                             PlanFindings& findings) const {
  std::string made;
  RESHARD_ASSIGN_OR_RETURN(const std::string* named, choice().TargetName(tensor.name, made));
  const std::string& target_name = *named;
  const auto make = [&]() -> Result<PlanFindings::Parameter> {
    RESHARD_ASSIGN_OR_RETURN(const DType target_dtype, TargetDTypeOf(tensor));
    return NoteOf(tensor, target_dtype);
  };
  RESHARD_ASSIGN_OR_RETURN(const PlanFindings::Parameter* const known,
                           findings.FindOrNote(target_name, make));
  findings.NoteForMindSpore(container_, target_name, tensor.kind, known->target_dtype,
                            known->full_shape);
  if (known->source_name == tensor.name) return known;
  return MismatchError(
      fmt::format("the parameters {} and {} would both be written as {}; rename one differently, "
                  "or leave it out with `exclude`",
                  Quote(known->source_name), Quote(tensor.name), Quote(target_name)));
}

Status MindSporeTarget::NoteConverted(const SourceTensor& tensor, PlanFindings& findings) const {
  if (findings.silent) return {};
  RESHARD_ASSIGN_OR_RETURN(const PlanFindings::Parameter* const found, Note(tensor, findings));
  const PlanFindings::Parameter& known = *found;
  if (known.dtype == tensor.dtype && known.full_shape == tensor.full_shape) return {};
  return MismatchError(
      fmt::format("{}: by this file it is {} {} in full, but {} {} by another: {}; do the ranks "
                  "belong to one checkpoint?",
                  source().Where(tensor.file, tensor.name), DTypeName(tensor.dtype),
                  ToString(tensor.full_shape), DTypeName(known.dtype), ToString(known.full_shape),
                  source().Where(known.file, tensor.name)));
}

Result<DType> MindSporeTarget::TargetDTypeOf(const SourceTensor& tensor) const {
  if (tensor.kind != ArrayKind::kTensor) return tensor.dtype;
  return choice().TargetDType(
      tensor.name, tensor.dtype, tensor.full_shape,
      [&](std::string_view name) { return source().HasBeside(tensor, name); });
}

Status MindSporeTarget::MakeConverted(const Recipe& recipe, size_t place, int64_t rank,
                                      PlanFindings& findings, LastBox& box,
                                      TargetArray& array) const {
  SourceTensor& tensor = OnePiece(array).tensors.front();
  recipe.converted.GetTensor(place, tensor);
  if (!findings.HasNoted(recipe.number)) RESHARD_RETURN_IF_ERROR(NoteConverted(tensor, findings));
  if (tensor.kind != ArrayKind::kTensor) {
    return MakeCopied(recipe, std::string(tensor.name), rank, findings, array);
  }
  std::string made;
  RESHARD_ASSIGN_OR_RETURN(const std::string* target_name, choice().TargetName(tensor.name, made));
  array.name = *target_name;
  RESHARD_ASSIGN_OR_RETURN(array.dtype, TargetDTypeOf(tensor));
  if (box.form != recipe.converted.form(place)) {
    box.form = recipe.converted.form(place);
    box.box = recipe.converted.grid(place).BoxOf(rule_.TargetLocalRank(rank),
                                                 recipe.converted.shard_shape(place));
  }
  SetBox(box.box, array);
  return {};
}

Status MindSporeTarget::CheckCopied(const SourceTensor& tensor, PlanFindings& findings) const {
  if (tensor.kind != ArrayKind::kTensor || ElementCount(tensor.full_shape).value_or(0) <= 1 ||
      rule_.Unmatched(tensor.name)) {
    return {};
  }
  const auto cuts_others = [&tensor](const Strategy* strategy, int64_t devices) {
    return strategy != nullptr && devices > 1 && !strategy->Contains(tensor.name);
  };
  const bool of_source = cuts_others(rule_.source(), rule_.source_devices());
  if (!of_source && !cuts_others(rule_.target(), rule_.target_devices())) return {};
  if (unmatched_ == Selection::Unmatched::kError) {
    return MismatchError(
        fmt::format("parameter {} {} {} has no layout in the {} strategy; `unmatched=copy` {}",
                    Quote(tensor.name), DTypeName(tensor.dtype), ToString(tensor.full_shape),
                    of_source ? "source" : "target",
                    of_source ? "takes it from one source rank as if it had the full tensor"
                              : "writes it in full for each rank"));
  }
  (of_source ? findings.not_in_source_strategy : findings.not_in_target_strategy)
      .insert(Quote(tensor.name));
  return {};
}

Status MindSporeTarget::MakeCopied(const Recipe& recipe, const std::string& name, int64_t rank,
                                   PlanFindings& findings, TargetArray& array) const {
  RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor,
                           source().FindWhole(name, recipe.selection.stages, rule_.CopyRank(rank)));
  std::string made;
  RESHARD_ASSIGN_OR_RETURN(const std::string* target_name, choice().TargetName(name, made));
  array.name = *target_name;
  RESHARD_ASSIGN_OR_RETURN(array.dtype, TargetDTypeOf(tensor));
  if (!findings.silent) {
    RESHARD_RETURN_IF_ERROR(Note(tensor, findings).status());
    findings.NoteCopied(array.name, NoteOf(tensor, array.dtype));
    RESHARD_RETURN_IF_ERROR(CheckCopied(tensor, findings));
  }
  return TakeWhole(std::move(tensor), array);
}

}  // namespace reshard
