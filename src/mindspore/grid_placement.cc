#include "src/mindspore/grid_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// A wrong strategy shows in the first stages.
constexpr size_t kStagesWithStrays = 8;

// "rows 192 to 255 of \"lm_head.weight\"" and the like.
std::string CutWords(const Box& box, const Shape& full, std::string_view name) {
  std::optional<size_t> cut;  // the only dimension that is
  size_t cuts = 0;
  for (size_t d = 0; d < box.dims(); ++d) {
    if (box.extent[d] == full[d]) continue;
    cut = d;
    ++cuts;
  }
  if (cuts == 0) return Escape(name);
  if (cuts > 1 || *cut > 1) {
    return fmt::format("box {} of the full shape {} of {}", ToString(box), ToString(full),
                       Escape(name));
  }
  const std::string_view noun = box.dims() == 1 ? "element" : *cut == 0 ? "row" : "column";
  const int64_t first = box.begin[*cut];
  const int64_t count = box.extent[*cut];
  return count == 1
             ? fmt::format("{} {} of {}", noun, first, Escape(name))
             : fmt::format("{}s {} to {} of {}", noun, first, first + count - 1, Escape(name));
}

std::string AdviceForMissing(const ConversionRule& rule, const std::map<int64_t, FileId>& files,
                             uint64_t missing) {
  std::string advice = missing == 1 ? "add its folder"
                                    : "add their files; of ranks that hold the same, one is enough";
  if (files.empty()) return advice;
  const std::string hint =
      SwapHint(rule, files.begin()->first, files.rbegin()->first, files.size());
  return hint.empty() ? advice : advice + "; " + hint;
}

}  // namespace

GridPlacement::GridPlacement(const ConversionRule& rule, std::map<int64_t, FileId> rank_files,
                             ParameterChoice choice)
    : Placement({.files = std::move(rank_files),
                 .first = rule.SourceRank(0, 0),
                 .stage_ranks = rule.source_devices(),
                 .taken_stages = rule.NeededSourceStages(0),
                 .is_ascending = rule.stage_alone().has_value(),
                 .stand_ins = [&rule](int64_t rank) { return rule.groups().HoldersLike(rank); }}),
      rule_(rule),
      strategy_(*rule.source()),
      choice_(std::move(choice)) {}

std::optional<Placement::Told> GridPlacement::Tell(std::string_view name, int64_t near) const {
  const std::optional<int64_t> stage = strategy_.LowestStage(name);
  if (!stage) return {};
  return Told{.stage = *stage, .teller = {rule_.SourceRank(*stage, near), name}};
}

Status GridPlacement::Place(SourceTensor& tensor, std::string_view where) const {
  tensor.rank.reset();
  if (tensor.kind != ArrayKind::kTensor) return {};
  const Strategy::Stage& layouts = strategy_.stages()[static_cast<size_t>(tensor.stage)];
  // The words for an error are made only if there is one.
  const ParameterLayout& layout = *layouts.Find(tensor.name);
  auto grid = grids_.Get(layout, tensor.shard_shape.size(), where);
  if (!grid.ok()) {
    grid = grids_.Get(layout, tensor.shard_shape.size(),
                      fmt::format("{}, {}", where, Escape(strategy_.path())));
    RESHARD_RETURN_IF_ERROR(grid.status());
  }
  tensor.grid = *std::move(grid);
  RESHARD_ASSIGN_OR_RETURN(tensor.full_shape, tensor.grid->FullShape(tensor.shard_shape, where));
  if (!TensorBytes(tensor.full_shape, tensor.dtype)) {
    return MismatchError(fmt::format("{}: the full shape {} has too many bytes", where,
                                     ToString(tensor.full_shape)));
  }
  return {};
}

void GridPlacement::ForEachPart(const SourceTensor& tensor, const Box& box, int64_t near,
                                const PartVisitor& visit) const {
  const Shape& shard = tensor.shard_shape;
  const int64_t first = rule_.SourceRank(tensor.stage, 0);
  tensor.grid->ForEachOverlap(box, shard, [&](const std::vector<int64_t>& parts) {
    Part part = {parts,
                 ShardGrid::BoxOfParts(parts, shard),
                 shard,
                 {first + tensor.grid->RankOf(parts, near), tensor.name}};
    return visit(part);
  });
}

std::vector<int64_t> GridPlacement::LocalsOf(const SourceTensor& tensor, const Part& part) const {
  // A strategy may claim a million replicas when there are few files.
  const RankRange range = ranks().RanksOf(tensor.stage);
  const int64_t first = range.begin;
  const auto begin = ranks().files.lower_bound(first);
  const auto end = ranks().files.lower_bound(range.end);
  std::vector<int64_t> locals;
  if (std::distance(begin, end) < tensor.grid->replicas()) {
    for (auto file = begin; file != end; ++file) {
      if (tensor.grid->PartsOf(file->first - first) == part.id) {
        locals.push_back(file->first - first);
      }
    }
  } else {
    locals = tensor.grid->Replicas(part.id);
    std::erase_if(locals, [&](int64_t local) { return !ranks().files.contains(first + local); });
  }
  return locals;
}

std::vector<ArrayPlace> GridPlacement::HoldersOf(const SourceTensor& tensor,
                                                 const Part& part) const {
  std::vector<ArrayPlace> holders;
  for (const int64_t local : LocalsOf(tensor, part)) {
    holders.push_back({rule_.SourceRank(tensor.stage, local), tensor.name});
  }
  return holders;
}

void GridPlacement::AddLacking(int64_t stage, const ShardGrid& grid,
                               std::set<int64_t>& lacking) const {
  const RankRange range = ranks().RanksOf(stage);
  std::set<int64_t> there;  // numbers of parts
  for (auto file = ranks().files.lower_bound(range.begin);
       file != ranks().files.end() && file->first < range.end; ++file) {
    there.insert(grid.PartNumberOf(file->first - range.begin));
  }
  for (int64_t rank = range.begin; rank < range.end; ++rank) {
    if (!there.contains(grid.PartNumberOf(rank - range.begin))) lacking.insert(rank);
  }
}

Status GridPlacement::NotHeld(const SourceTensor& tensor, const Part& part,
                              const IsHeld& is_held) const {
  const std::string gap = CutWords(part.box, tensor.full_shape, tensor.name);
  if (const std::vector<ArrayPlace> places = HoldersOf(tensor, part); !places.empty()) {
    NumberRanges holders;
    for (const ArrayPlace& place : places) holders.Add(place.rank);
    return MismatchError(
        fmt::format("no file has {}: the source strategy {} puts {} into {}, but the file{} not "
                    "have the parameter; is this the checkpoint's strategy?",
                    gap, Escape(strategy_.path()), part.box.dims() == 0 ? "it" : "them",
                    holders.ToWords("rank"), holders.count() == 1 ? " does" : "s do"));
  }
  std::set<int64_t> lacking;
  AddLacking(tensor.stage, *tensor.grid, lacking);
  for (int64_t stage = 0; stage < rule_.source_stages(); ++stage) {
    std::set<const ParameterLayout*> seen;  // equal ones are held once
    for (const Strategy::Entry layout : strategy_.stages()[static_cast<size_t>(stage)]) {
      if (seen.contains(&layout.layout) || !choice_.Takes(layout.name) ||
          !is_held(stage, layout.name)) {
        continue;
      }
      seen.insert(&layout.layout);
      const auto grid = grids_.Get(layout.layout, DimsOf(layout.layout), "");
      if (grid.ok()) AddLacking(stage, **grid, lacking);
    }
  }
  NumberRanges ranks;
  for (const int64_t rank : lacking) ranks.Add(rank);
  return MismatchError(fmt::format("no checkpoint for {}, which {} needs (first gap: {}); {}",
                                   ranks.ToSentence("rank"), Escape(strategy_.path()), gap,
                                   AdviceForMissing(rule_, this->ranks().files, ranks.count())));
}

void GridPlacement::Saw(int64_t rank, FileId file, const FileTable& table) const {
  if (rule_.source_stages() == 1) return;
  const int64_t stage = (rank - rule_.SourceRank(0, 0)) / rule_.source_devices();
  const std::lock_guard lock(strays_mutex_);
  const auto [has_strays, is_new] = tables_.try_emplace({stage, table.id()}, false);
  if (is_new) {
    const Strategy::Stage& layouts = strategy_.stages()[static_cast<size_t>(stage)];
    for (const StoredArray& parameter : table.arrays()) {
      if (layouts.Find(parameter.name) != nullptr || !strategy_.Contains(parameter.name)) {
        continue;
      }
      if (strays_.size() == kStagesWithStrays && !strays_.contains(stage)) return;
      const auto place = strays_.try_emplace(stage, Strays{rank, file, {}}).first;
      place->second.names.emplace(parameter.name);
      has_strays->second = true;
    }
  }
  if (!has_strays->second) return;
  Strays& strays = strays_.at(stage);
  if (rank >= strays.rank) return;
  strays.rank = rank;
  strays.file = file;
}

std::map<int64_t, GridPlacement::Strays> GridPlacement::FoundStrays() const {
  const std::lock_guard lock(strays_mutex_);
  return strays_;
}

}  // namespace reshard
