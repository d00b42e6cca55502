#include "src/mindspore/grid_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// A wrong strategy shows in the first of them.
constexpr size_t kStagesWithStrays = 8;

}  // namespace

Placement::Ranks GridPlacement::RanksOf(int64_t stage) const {
  const int64_t begin = rule_.SourceRank(stage, 0);
  return {begin, begin + rule_.source_devices()};
}

Status GridPlacement::Place(SourceTensor& tensor, std::string_view where) const {
  tensor.rank.reset();
  if (tensor.kind != ArrayKind::kTensor) return {};
  const StrategyStage& layouts = strategy_.stages()[static_cast<size_t>(tensor.stage)];
  // Words are put together only where there is something to say.
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

void GridPlacement::ForEachPart(const SourceTensor& tensor, const Box& box,
                                const PartVisitor& visit) const {
  const Shape& shard = tensor.shard_shape;
  tensor.grid->ForEachOverlap(box, shard, [&](const std::vector<int64_t>& parts) {
    Part part = {parts, ShardGrid::BoxOfParts(parts, shard), shard};
    return visit(part);
  });
}

std::vector<int64_t> GridPlacement::HoldersOf(const SourceTensor& tensor, const Part& part) const {
  // A strategy may claim a million replicas where there are few files.
  const Ranks ranks = RanksOf(tensor.stage);
  const int64_t first = ranks.begin;
  const auto begin = files().lower_bound(first);
  const auto end = files().lower_bound(ranks.end);
  std::vector<int64_t> locals;
  if (std::distance(begin, end) < tensor.grid->replicas()) {
    for (auto file = begin; file != end; ++file) {
      if (tensor.grid->PartsOf(file->first - first) == part.id) {
        locals.push_back(file->first - first);
      }
    }
  } else {
    locals = tensor.grid->Replicas(part.id);
    std::erase_if(locals, [&](int64_t local) { return !files().contains(first + local); });
  }
  return locals;
}

Status GridPlacement::NotHeld(const SourceTensor& tensor, const Part& part) const {
  NumberRanges ranks;
  for (const int64_t replica : tensor.grid->Replicas(part.id)) {
    ranks.Add(rule_.SourceRank(tensor.stage, replica));
  }
  return MismatchError(fmt::format(
      "parameter {}: box {} of the full shape {} is in no source file; the source "
      "strategy {} puts it in {}{}",
      Quote(tensor.name), ToString(part.box), ToString(tensor.full_shape), Escape(strategy_.path()),
      ranks.ToWords("rank"),
      !HoldersOf(tensor, part).empty()
          ? std::string(", and these files do not have it: is this the checkpoint's strategy?")
          : fmt::format(": add {}; or are the two strategies swapped?",
                        ranks.count() == 1 ? "its folder" : "the folder of one of these ranks")));
}

void GridPlacement::Saw(int64_t rank, FileId file, const FileTable& table) const {
  if (rule_.source_stages() == 1) return;
  const int64_t stage = (rank - rule_.SourceRank(0, 0)) / rule_.source_devices();
  const std::lock_guard lock(strays_mutex_);
  const auto [has_strays, is_new] = tables_.try_emplace({stage, table.id()}, false);
  if (is_new) {
    const StrategyStage& layouts = strategy_.stages()[static_cast<size_t>(stage)];
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
