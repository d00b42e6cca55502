#include "src/mindspore/source_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// A wrong strategy shows in the first of them.
constexpr size_t kStagesWithStrays = 8;

}  // namespace

SourceShards::SourceShards(SourceFiles& files, TableCache& indexes, const ConversionRule& rule,
                           std::map<int64_t, FileId> rank_files, HolderGroups groups,
                           MemoryCheck memory)
    : files_(files),
      indexes_(indexes),
      rule_(rule),
      rank_files_(std::move(rank_files)),
      groups_(std::move(groups)),
      memory_(std::move(memory)) {
  for (const auto& [rank, file] : rank_files_) ranks_.emplace_back(rank, file);
}

std::string SourceShards::Where(FileId file, std::string_view name) const {
  return fmt::format("{}: parameter {}", Escape(files_.path(file)), Quote(name));
}

bool SourceShards::HasFiles(int64_t stage) const {
  const auto file = rank_files_.lower_bound(rule_.SourceRank(stage, 0));
  return file != rank_files_.end() && file->first < EndOf(stage);
}

int64_t SourceShards::EndOf(int64_t stage) const {
  return rule_.source() == nullptr ? std::numeric_limits<int64_t>::max()
                                   : rule_.SourceRank(stage, 0) + rule_.source_devices();
}

std::vector<int64_t> SourceShards::LocalRanks(int64_t stage) const {
  std::vector<int64_t> locals;
  const int64_t first = rule_.SourceRank(stage, 0);
  const auto end = rank_files_.lower_bound(EndOf(stage));
  for (auto file = rank_files_.lower_bound(first); file != end; ++file) {
    locals.push_back(file->first - first);
  }
  return locals;
}

std::vector<int64_t> SourceShards::HoldersLike(int64_t stage, int64_t local) const {
  const int64_t first = rule_.SourceRank(stage, 0);
  std::vector<int64_t> others;
  for (const int64_t rank : groups_.HoldersLike(first + local)) {
    if (rank != first + local) others.push_back(rank - first);
  }
  return others;
}

Result<TableHandle> SourceShards::IndexOf(int64_t stage, int64_t local) const {
  RankEntry* entry = Find(rule_.SourceRank(stage, local));
  if (entry == nullptr) return TableHandle();
  return Open(*entry);
}

Result<TableHandle> SourceShards::Open(RankEntry& entry) const {
  RESHARD_ASSIGN_OR_RETURN(TableHandle index, indexes_.Get(entry.file));
  if (entry.table != index->table().id()) {
    FindStrays(entry, *index);
    entry.table = index->table().id();
  }
  return index;
}

void SourceShards::FindStrays(const RankEntry& entry, const IndexedFile& index) const {
  if (rule_.source_stages() == 1) return;
  const int64_t stage = (entry.rank - rule_.SourceRank(0, 0)) / rule_.source_devices();
  const std::lock_guard lock(strays_mutex_);
  const auto [table, is_new] = tables_.try_emplace({stage, index.table().id()}, false);
  if (is_new) {
    const StrategyStage& layouts = rule_.source()->stages()[static_cast<size_t>(stage)];
    for (const StoredArray& parameter : index.parameters()) {
      if (layouts.Find(parameter.name) != nullptr || !rule_.source()->Contains(parameter.name)) {
        continue;
      }
      if (strays_.size() == kStagesWithStrays && !strays_.contains(stage)) return;
      const auto place = strays_.try_emplace(stage, Strays{entry.rank, entry.file, {}}).first;
      place->second.names.insert(parameter.name);
      table->second = true;
    }
  }
  if (!table->second) return;
  Strays& strays = strays_.at(stage);
  if (entry.rank >= strays.rank) return;
  strays.rank = entry.rank;
  strays.file = entry.file;
}

std::map<int64_t, SourceShards::Strays> SourceShards::FoundStrays() const {
  const std::lock_guard lock(strays_mutex_);
  return strays_;
}

uint64_t SourceShards::KnownTable(int64_t stage, int64_t local) const {
  const RankEntry* const entry = Find(rule_.SourceRank(stage, local));
  return entry == nullptr ? 0 : entry->table.load();
}

bool SourceShards::HasNewFile(int64_t stage, int64_t local) const {
  const RankEntry* const entry = Find(rule_.SourceRank(stage, local));
  return entry != nullptr && entry->table == 0;
}

Result<uint64_t> SourceShards::TableOf(int64_t stage, int64_t local) const {
  RankEntry* entry = Find(rule_.SourceRank(stage, local));
  if (entry == nullptr) return 0;
  RESHARD_ASSIGN_OR_RETURN(const uint64_t table, TableOf(*entry));
  for (const int64_t other : HoldersLike(stage, local)) {
    RankEntry* of_other = Find(rule_.SourceRank(stage, other));
    if (of_other == nullptr) continue;
    RESHARD_ASSIGN_OR_RETURN(const uint64_t other_table, TableOf(*of_other));
    if (other_table != table) return 0;
  }
  return table;
}

Result<uint64_t> SourceShards::TableOf(RankEntry& entry) const {
  if (const uint64_t known = entry.table) return known;
  RESHARD_ASSIGN_OR_RETURN(const TableHandle index, Open(entry));
  return index->table().id();
}

SourceShards::RankEntry* SourceShards::Find(int64_t rank) const {
  if (ranks_.empty()) return nullptr;
  // Where no rank is missing, this is its place.
  const auto guess = static_cast<size_t>(rank - ranks_.front().rank);
  if (guess < ranks_.size() && ranks_[guess].rank == rank) return &ranks_[guess];
  const auto place = LowerBound(rank);
  return place == ranks_.end() || place->rank != rank ? nullptr : &*place;
}

std::deque<SourceShards::RankEntry>::iterator SourceShards::LowerBound(int64_t rank) const {
  return std::lower_bound(
      ranks_.begin(), ranks_.end(), rank,
      [](const RankEntry& entry, int64_t wanted) { return entry.rank < wanted; });
}

Result<const SourceShards::Census*> SourceShards::CensusOf(int64_t stage) const {
  const std::lock_guard lock(census_mutex_);
  if (const auto known = census_.find(stage); known != census_.end()) return &known->second;

  Census census;
  const int64_t first = rule_.SourceRank(stage, 0);
  const auto begin = rank_files_.lower_bound(first);
  const auto end = rank_files_.lower_bound(EndOf(stage));
  const auto add = [&](int64_t rank) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, Open(*Find(rank)));
    ++census.files;
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_));
    for (const StoredArray& parameter : index->parameters()) {
      auto [entry, is_new] = census.holders.try_emplace(parameter.name);
      Census::Holders& holders = entry->second;
      if (is_new) census.names.push_back(parameter.name);
      if (is_new || rank - first < holders.lowest) holders.lowest = rank - first;
      ++holders.count;
    }
    return {};
  };
  if (rule_.stage_alone()) {
    for (auto file = begin; file != end; ++file) {
      RESHARD_RETURN_IF_ERROR(add(file->first));
    }
  } else {
    for (auto file = end; file != begin;) {
      --file;
      RESHARD_RETURN_IF_ERROR(add(file->first));
    }
  }
  census.files_differ =
      std::any_of(census.holders.begin(), census.holders.end(),
                  [&](const auto& entry) { return entry.second.count != census.files; });
  return &census_.emplace(stage, std::move(census)).first->second;
}

Result<SourceTensor> SourceShards::Describe(std::string_view name, int64_t preferred) const {
  const int64_t stage = rule_.source() == nullptr ? 0 : rule_.LowestSourceStage(name);
  int64_t local = preferred;
  RESHARD_ASSIGN_OR_RETURN(TableHandle index, IndexOf(stage, local));
  const StoredArray* parameter = index ? index->Find(name) : nullptr;
  if (parameter == nullptr) {
    RESHARD_ASSIGN_OR_RETURN(const Census* census, CensusOf(stage));
    const auto holders = census->holders.find(std::string(name));
    if (holders == census->holders.end()) {
      return MismatchError(
          fmt::format("parameter {} is in no file of source stage {}", Quote(name), stage));
    }
    local = holders->second.lowest;
    RESHARD_ASSIGN_OR_RETURN(index, IndexOf(stage, local));
    parameter = index->Find(name);
  }

  SourceTensor tensor = StandaloneTensor(*parameter, stage, index->file());
  tensor.table = index->table().id();
  tensor.content = parameter->content;
  if (rule_.source() == nullptr || tensor.kind != ArrayKind::kTensor) return tensor;
  const StrategyStage& layouts = rule_.source()->stages()[static_cast<size_t>(stage)];
  const std::string where = Where(index->file(), name);
  RESHARD_ASSIGN_OR_RETURN(
      tensor.grid, grids_.Get(*layouts.Find(name), tensor.shard_shape.size(),
                              fmt::format("{}, {}", where, Escape(rule_.source()->path()))));
  RESHARD_ASSIGN_OR_RETURN(tensor.full_shape, tensor.grid->FullShape(tensor.shard_shape, where));
  if (!TensorBytes(tensor.full_shape, tensor.dtype)) {
    return MismatchError(fmt::format("{}: the full shape {} has too many bytes", where,
                                     ToString(tensor.full_shape)));
  }
  return tensor;
}

Result<SourceShards::Holder> SourceShards::FindWhole(std::string_view name,
                                                     const std::vector<int64_t>& stages,
                                                     int64_t preferred) const {
  for (const int64_t stage : stages) {
    RESHARD_ASSIGN_OR_RETURN(TableHandle index, IndexOf(stage, preferred));
    if (index && index->Find(name) != nullptr) {
      return Holder{stage, rule_.SourceRank(stage, preferred), std::move(index)};
    }
    for (const int64_t other : HoldersLike(stage, preferred)) {
      RESHARD_ASSIGN_OR_RETURN(index, IndexOf(stage, other));
      if (index && index->Find(name) != nullptr) {
        return Holder{stage, rule_.SourceRank(stage, other), std::move(index)};
      }
    }
  }
  for (const int64_t stage : stages) {
    RESHARD_ASSIGN_OR_RETURN(const Census* census, CensusOf(stage));
    const auto holders = census->holders.find(std::string(name));
    if (holders == census->holders.end()) continue;
    const int64_t local = holders->second.lowest;
    RESHARD_ASSIGN_OR_RETURN(TableHandle index, IndexOf(stage, local));
    return Holder{stage, rule_.SourceRank(stage, local), std::move(index)};
  }
  return MismatchError(fmt::format("parameter {} is in no source file", Quote(name)));
}

Result<std::vector<PlacedPiece>> SourceShards::Cover(const SourceTensor& tensor, const Box& box,
                                                     int64_t preferred) const {
  std::vector<PlacedPiece> shards;
  Status status;
  tensor.grid->ForEachOverlap(box, tensor.shard_shape, [&](const std::vector<int64_t>& parts) {
    auto shard = Locate(tensor, parts, preferred);
    if (shard.ok()) {
      shards.push_back(*std::move(shard));
    } else {
      status = shard.status();
    }
    return status.ok();
  });
  if (!status.ok()) return status;
  return shards;
}

Result<std::vector<int64_t>> SourceShards::Holders(const SourceTensor& tensor,
                                                   const std::vector<int64_t>& parts) const {
  std::vector<int64_t> ranks;
  for (const int64_t local : tensor.grid->Replicas(parts)) {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, IndexOf(tensor.stage, local));
    if (index && index->Find(tensor.name) != nullptr) {
      ranks.push_back(rule_.SourceRank(tensor.stage, local));
    }
  }
  return ranks;
}

Result<PlacedPiece> SourceShards::Locate(const SourceTensor& tensor,
                                         const std::vector<int64_t>& parts,
                                         int64_t preferred) const {
  const int64_t rank = rule_.SourceRank(tensor.stage, tensor.grid->RankOf(parts, preferred));
  RankEntry* entry = Find(rank);
  if (entry == nullptr) return LocateElsewhere(tensor, parts, preferred);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t table, TableOf(*entry));
  if (table != tensor.table) return LocateElsewhere(tensor, parts, preferred);
  return PlacedPiece{rank, entry->file, ShardGrid::BoxOfParts(parts, tensor.shard_shape),
                     tensor.content};
}

std::vector<int64_t> SourceShards::FilesOf(const SourceTensor& tensor,
                                           const std::vector<int64_t>& parts) const {
  // A strategy may claim a million replicas where there are few files.
  const int64_t first = rule_.SourceRank(tensor.stage, 0);
  const auto begin = LowerBound(first);
  const auto end = LowerBound(EndOf(tensor.stage));
  std::vector<int64_t> locals;
  if (rule_.source() == nullptr) {
    for (auto entry = begin; entry != end; ++entry) locals.push_back(entry->rank);
  } else if (end - begin < tensor.grid->replicas()) {
    for (auto entry = begin; entry != end; ++entry) {
      if (tensor.grid->PartsOf(entry->rank - first) == parts) locals.push_back(entry->rank - first);
    }
  } else {
    locals = tensor.grid->Replicas(parts);
    std::erase_if(locals, [&](int64_t local) { return Find(first + local) == nullptr; });
  }
  return locals;
}

Result<PlacedPiece> SourceShards::LocateElsewhere(const SourceTensor& tensor,
                                                  const std::vector<int64_t>& parts,
                                                  int64_t preferred) const {
  const Box box = ShardGrid::BoxOfParts(parts, tensor.shard_shape);
  int64_t local = tensor.grid->RankOf(parts, preferred);
  RESHARD_ASSIGN_OR_RETURN(TableHandle index, IndexOf(tensor.stage, local));
  const StoredArray* parameter = index ? index->Find(tensor.name) : nullptr;
  if (parameter == nullptr) {
    // Another replica, the lowest that has it.
    for (const int64_t replica : FilesOf(tensor, parts)) {
      local = replica;
      RESHARD_ASSIGN_OR_RETURN(index, IndexOf(tensor.stage, local));
      parameter = index->Find(tensor.name);
      if (parameter != nullptr) break;
    }
    if (parameter == nullptr) {
      std::vector<std::string> ranks;
      for (const int64_t replica : tensor.grid->Replicas(parts)) {
        ranks.push_back(std::to_string(rule_.SourceRank(tensor.stage, replica)));
      }
      return MismatchError(fmt::format(
          "parameter {}: box {} of the full shape {} is in no source file; the source "
          "strategy {} puts it in rank {}{}",
          Quote(tensor.name), ToString(box), ToString(tensor.full_shape),
          rule_.source() == nullptr ? "" : Escape(rule_.source()->path()), FirstOf(ranks),
          !FilesOf(tensor, parts).empty()
              ? ", and the files that are there do not have it: is the strategy this checkpoint's?"
              : ": add the folder of one of these ranks; or are the two strategies swapped?"));
    }
  }
  if (parameter->kind != ArrayKind::kTensor || parameter->dtype != tensor.dtype ||
      parameter->shape != tensor.shard_shape) {
    return MismatchError(fmt::format(
        "{}: expected {} {} as in the other ranks, found {} {}; are these ranks of one checkpoint?",
        Where(index->file(), tensor.name), DTypeName(tensor.dtype), ToString(tensor.shard_shape),
        parameter->kind == ArrayKind::kMapTensor ? "a MapTensor" : DTypeName(parameter->dtype),
        ToString(parameter->shape)));
  }
  return PlacedPiece{rule_.SourceRank(tensor.stage, local), index->file(), box, parameter->content};
}

}  // namespace reshard
