#include "src/source/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Returns the tensor of a parameter as it is in `file`, the file of `rank`.
SourceTensor StandaloneTensor(const StoredArray& parameter, int64_t stage, int64_t rank,
                              FileId file) {
  SourceTensor tensor;
  tensor.name = parameter.name;
  tensor.kind = parameter.kind;
  tensor.dtype = parameter.dtype;
  tensor.full_shape = parameter.shape;
  tensor.shard_shape = parameter.shape;
  tensor.stage = stage;
  tensor.file = file;
  const auto content =
      parameter.kind == ArrayKind::kMapTensor ? parameter.framed : parameter.content;
  tensor.content.assign(content.begin(), content.end());
  tensor.grid = WholeGrid(parameter.shape.size());
  tensor.rank = rank;
  return tensor;
}

}  // namespace

Source::Source(SourceFiles& files, TableCache& tables, const Placement& placement,
               MemoryCheck memory)
    : files_(files), tables_(tables), placement_(placement), memory_(std::move(memory)) {
  for (const auto& [rank, file] : ranks().files) ranks_.emplace_back(rank, file);
}

std::string Source::Where(FileId file, std::string_view name) const {
  return fmt::format("{}: parameter {}", Escape(files_.path(file)), Quote(name));
}

std::vector<int64_t> Source::StandIns(int64_t stage, int64_t local) const {
  const int64_t first = RankOf(stage, 0);
  std::vector<int64_t> others;
  if (!ranks().stand_ins) return others;
  for (const int64_t rank : ranks().stand_ins(first + local)) {
    if (rank != first + local) others.push_back(rank - first);
  }
  return others;
}

Result<TableHandle> Source::TableOf(int64_t stage, int64_t local) const {
  RankEntry* entry = Find(RankOf(stage, local));
  if (entry == nullptr) return TableHandle();
  return Open(*entry);
}

Result<TableHandle> Source::Open(RankEntry& entry) const {
  RESHARD_ASSIGN_OR_RETURN(TableHandle index, tables_.Get(entry.file));
  if (entry.table != index->table().id()) {
    placement_.Saw(entry.rank, entry.file, index->table());
    entry.no_crc = !index->states_crc();
    {
      const std::lock_guard lock(metadata_mutex_);
      entry.metadata = index->table().metadata();
    }
    entry.table = index->table().id();
  }
  return index;
}

uint64_t Source::KnownTableId(int64_t stage, int64_t local) const {
  const RankEntry* const entry = Find(RankOf(stage, local));
  return entry == nullptr ? 0 : entry->table.load();
}

bool Source::IsKnownWithoutCrc(int64_t rank) const {
  const RankEntry* const entry = Find(rank);
  return entry != nullptr && entry->no_crc;
}

bool Source::HasNewFile(int64_t stage, int64_t local) const {
  const RankEntry* const entry = Find(RankOf(stage, local));
  return entry != nullptr && entry->table == 0;
}

Result<uint64_t> Source::TableIdOf(int64_t stage, int64_t local) const {
  RankEntry* entry = Find(RankOf(stage, local));
  if (entry == nullptr) return 0;
  RESHARD_ASSIGN_OR_RETURN(const uint64_t table, TableIdOf(*entry));
  for (const int64_t other : StandIns(stage, local)) {
    RankEntry* of_other = Find(RankOf(stage, other));
    if (of_other == nullptr) continue;
    RESHARD_ASSIGN_OR_RETURN(const uint64_t other_table, TableIdOf(*of_other));
    if (other_table != table) return 0;
  }
  return table;
}

Result<uint64_t> Source::TableIdOf(RankEntry& entry) const {
  if (const uint64_t known = entry.table) return known;
  RESHARD_ASSIGN_OR_RETURN(const TableHandle index, Open(entry));
  return index->table().id();
}

Source::RankEntry* Source::Find(int64_t rank) const {
  if (ranks_.empty()) return nullptr;
  // If no rank is missing, this is its place.
  const auto guess = static_cast<size_t>(rank - ranks_.front().rank);
  if (guess < ranks_.size() && ranks_[guess].rank == rank) return &ranks_[guess];
  const auto place =
      std::lower_bound(ranks_.begin(), ranks_.end(), rank,
                       [](const RankEntry& entry, int64_t wanted) { return entry.rank < wanted; });
  return place == ranks_.end() || place->rank != rank ? nullptr : &*place;
}

Result<const Source::Census*> Source::CensusOf(int64_t stage) const {
  const std::lock_guard lock(census_mutex_);
  if (const auto known = census_.find(stage); known != census_.end()) return &known->second;

  Census census;
  if (const PartList* const all = placement_.all_tensors()) {
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_, all->tensors().size() * sizeof(std::string)));
    census.names.reserve(all->tensors().size());
    for (const PartList::Tensor& tensor : all->tensors()) census.names.emplace_back(tensor.name);
    return &census_.emplace(stage, std::move(census)).first->second;
  }
  const auto add = [&](int64_t local) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, TableOf(stage, local));
    ++census.files;
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_));
    for (const StoredArray& parameter : index->arrays()) {
      auto [entry, is_new] = census.holders.try_emplace(std::string(parameter.name));
      Census::Holders& holders = entry->second;
      if (is_new) census.names.emplace_back(parameter.name);
      if (is_new || local < holders.lowest) holders.lowest = local;
      ++holders.count;
    }
    return {};
  };
  std::vector<int64_t> locals = ranks().LocalRanks(stage);
  if (!ranks().is_ascending) std::reverse(locals.begin(), locals.end());
  for (const int64_t local : locals) RESHARD_RETURN_IF_ERROR(add(local));
  census.files_differ =
      std::any_of(census.holders.begin(), census.holders.end(),
                  [&](const auto& entry) { return entry.second.count != census.files; });
  return &census_.emplace(stage, std::move(census)).first->second;
}

Result<std::shared_ptr<const FileStrings>> Source::MetadataOf(int64_t stage, int64_t local) const {
  RankEntry* const entry = Find(RankOf(stage, local));
  if (entry == nullptr) return std::shared_ptr<const FileStrings>();
  RESHARD_RETURN_IF_ERROR(TableIdOf(*entry).status());
  const std::lock_guard lock(metadata_mutex_);
  return entry->metadata;
}

bool Source::HasBeside(const IndexedFile& file, std::string_view name) const {
  if (placement_.all_tensors() != nullptr) return placement_.Places(name);
  return file.Find(name) != nullptr || HasElsewhere(name);
}

bool Source::HasBeside(const SourceTensor& tensor, std::string_view name) const {
  const auto index = TableOf(tensor);
  return index.ok() ? HasBeside(**index, name) : HasElsewhere(name);
}

bool Source::HasElsewhere(std::string_view name) const {
  if (placement_.Places(name)) return true;
  const std::optional<int64_t> home = placement_.HomeOf(name);
  if (!home) return false;
  const Result<Found> found = FindArray({*home, name});
  return found.ok() && found->array != nullptr;
}

Result<Source::Found> Source::FindArray(const ArrayPlace& place) const {
  Found found;
  RankEntry* const entry = Find(place.rank);
  if (entry == nullptr) return found;
  RESHARD_ASSIGN_OR_RETURN(found.table, Open(*entry));
  found.array = found.table->Find(place.array);
  return found;
}

Result<SourceTensor> Source::Describe(std::string_view name, int64_t near, size_t& next) const {
  const auto told = placement_.Tell(name, near);
  if (told && told->dtype) return ToldTensor(name, *told);
  const int64_t stage = told ? told->stage : 0;
  ArrayPlace place =
      told ? told->teller : ArrayPlace{RankOf(0, placement_.HomeOf(name).value_or(near)), name};
  RankEntry* entry = Find(place.rank);
  TableHandle index;
  const StoredArray* parameter = nullptr;
  if (entry != nullptr) {
    RESHARD_ASSIGN_OR_RETURN(index, Open(*entry));
    parameter = index->table().Find(place.array, next);
  }
  if (parameter == nullptr) {
    RESHARD_ASSIGN_OR_RETURN(const Census* census, CensusOf(stage));
    const auto holders = census->holders.find(std::string(name));
    if (holders == census->holders.end()) {
      return MismatchError(
          fmt::format("parameter {} is in no file of source stage {}", Quote(name), stage));
    }
    place = {RankOf(stage, holders->second.lowest), name};
    RESHARD_ASSIGN_OR_RETURN(index, TableOf(stage, holders->second.lowest));
    parameter = index->Find(name);
  }

  SourceTensor tensor = StandaloneTensor(*parameter, stage, place.rank, index->file());
  tensor.name = name;
  tensor.table = index->table().id();
  // The words for an error are made only if there is one.
  if (placement_.Place(tensor, "").ok()) return tensor;
  RESHARD_RETURN_IF_ERROR(placement_.Place(tensor, Where(index->file(), name)));
  return tensor;
}

SourceTensor Source::ToldTensor(std::string_view name, const Placement::Told& told) const {
  SourceTensor tensor;
  tensor.name = name;
  tensor.dtype = *told.dtype;
  tensor.full_shape = *told.full_shape;
  tensor.shard_shape = *told.full_shape;
  tensor.stage = told.stage;
  const RankEntry* const entry = Find(told.teller.rank);
  if (entry != nullptr) tensor.file = entry->file;
  tensor.grid = WholeGrid(tensor.full_shape.size());
  return tensor;
}

Result<SourceTensor> Source::FindWhole(std::string_view name, std::span<const int64_t> stages,
                                       int64_t near) const {
  // No value if the file of a rank is missing, or lacks it.
  const auto find = [&](int64_t stage, int64_t local) -> Result<std::optional<SourceTensor>> {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, TableOf(stage, local));
    const StoredArray* const parameter = index ? index->Find(name) : nullptr;
    if (parameter == nullptr) return std::optional<SourceTensor>();
    return std::optional(StandaloneTensor(*parameter, stage, RankOf(stage, local), index->file()));
  };
  if (placement_.all_tensors() != nullptr) return Describe(name, near);
  if (const auto home = placement_.HomeOf(name)) near = *home;
  for (const int64_t stage : stages) {
    RESHARD_ASSIGN_OR_RETURN(auto found, find(stage, near));
    if (found) return *std::move(found);
    for (const int64_t other : StandIns(stage, near)) {
      RESHARD_ASSIGN_OR_RETURN(found, find(stage, other));
      if (found) return *std::move(found);
    }
  }
  if (placement_.Places(name)) {
    RESHARD_ASSIGN_OR_RETURN(auto replica, FindReplica(name, near));
    if (replica) return *std::move(replica);
  }
  for (const int64_t stage : stages) {
    RESHARD_ASSIGN_OR_RETURN(const Census* census, CensusOf(stage));
    const auto holders = census->holders.find(std::string(name));
    if (holders == census->holders.end()) continue;
    RESHARD_ASSIGN_OR_RETURN(auto found, find(stage, holders->second.lowest));
    if (found) return *std::move(found);
  }
  return MismatchError(fmt::format("parameter {} is in no source file", Quote(name)));
}

Result<std::optional<SourceTensor>> Source::FindReplica(std::string_view name,
                                                        int64_t local) const {
  const std::optional<SourceTensor> none;
  const Result<SourceTensor> placed = Describe(name, local);
  if (!placed.ok() || placed->rank) return none;
  const SourceTensor& tensor = *placed;
  Result<std::optional<SourceTensor>> found = none;
  size_t parts = 0;
  const int64_t rank = RankOf(tensor.stage, local);
  const auto look = [&](Placement::Part& part) {
    ++parts;
    if (part.nearest.rank != rank) return true;
    found = NotHeld(tensor, part);
    for (const ArrayPlace& holder : placement_.HoldersOf(tensor, part)) {
      const Result<Found> held = FindArray(holder);
      if (!held.ok()) {
        found = held.status();
        break;
      }
      if (held->array == nullptr) continue;
      found = std::optional(
          StandaloneTensor(*held->array, tensor.stage, holder.rank, held->table->file()));
      break;
    }
    return true;
  };
  placement_.ForEachPart(tensor, Box::Whole(tensor.full_shape), local, look);
  // If the tensor is whole everywhere, any file is as good.
  return parts > 1 ? found : none;
}

Result<SourceTensor> Source::DescribeFull(std::string_view name, size_t& next) const {
  if (placement_.Places(name)) {
    RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor, Describe(name, 0, next));
    if (tensor.kind == ArrayKind::kTensor) return tensor;
  }
  return FindWhole(name, ranks().taken_stages, 0);
}

Result<std::vector<PlacedPiece>> Source::Cover(const SourceTensor& tensor, const Box& box,
                                               int64_t near) const {
  std::vector<PlacedPiece> pieces;
  if (tensor.rank) {
    pieces.push_back(
        {*tensor.rank, tensor.file, Box::Whole(tensor.full_shape), tensor.content, true});
    return pieces;
  }
  Status status;
  placement_.ForEachPart(tensor, box, near, [&](Placement::Part& part) {
    auto piece = Locate(tensor, part);
    if (piece.ok()) {
      pieces.push_back(*std::move(piece));
    } else {
      status = piece.status();
    }
    return status.ok();
  });
  if (!status.ok()) return status;
  return pieces;
}

Result<std::vector<Source::HeldPart>> Source::PartsOf(const SourceTensor& tensor) const {
  std::vector<HeldPart> parts;
  const Box whole = Box::Whole(tensor.full_shape);
  if (tensor.rank) {
    parts.push_back({whole, {*tensor.rank}});
    return parts;
  }
  Status status;
  placement_.ForEachPart(tensor, whole, 0, [&](Placement::Part& part) {
    HeldPart held;
    for (const ArrayPlace& holder : placement_.HoldersOf(tensor, part)) {
      const Result<Found> found = FindArray(holder);
      if (!found.ok()) {
        status = found.status();
        return false;
      }
      if (found->array != nullptr) held.ranks.push_back(holder.rank);
    }
    held.box = std::move(part.box);
    parts.push_back(std::move(held));
    return true;
  });
  if (!status.ok()) return status;
  return parts;
}

Result<PlacedPiece> Source::Locate(const SourceTensor& tensor, Placement::Part& part) const {
  RankEntry* entry = Find(part.nearest.rank);
  if (entry == nullptr) return LocateElsewhere(tensor, part);
  RESHARD_ASSIGN_OR_RETURN(const uint64_t table, TableIdOf(*entry));
  if (table != tensor.table) return LocateElsewhere(tensor, part);
  return PlacedPiece{part.nearest.rank, entry->file, std::move(part.box), tensor.content, true};
}

Status Source::NotHeld(const SourceTensor& tensor, const Placement::Part& part) const {
  std::map<int64_t, TableHandle> tables;  // a file of each stage, which is enough for messages
  const auto is_held = [&](int64_t stage, std::string_view name) {
    const auto [table, is_new] = tables.try_emplace(stage);
    const std::vector<int64_t> locals = is_new ? ranks().LocalRanks(stage) : std::vector<int64_t>();
    if (!locals.empty()) {
      Result<TableHandle> found =
          stage == tensor.stage ? TableOf(tensor) : TableOf(stage, locals.front());
      if (found.ok()) table->second = *std::move(found);
    }
    return table->second && table->second->Find(name) != nullptr;
  };
  return placement_.NotHeld(tensor, part, is_held);
}

Result<PlacedPiece> Source::LocateElsewhere(const SourceTensor& tensor,
                                            Placement::Part& part) const {
  int64_t rank = part.nearest.rank;
  RESHARD_ASSIGN_OR_RETURN(Found found, FindArray(part.nearest));
  if (found.array == nullptr) {
    // Another replica, the lowest that has it.
    for (const ArrayPlace& holder : placement_.HoldersOf(tensor, part)) {
      rank = holder.rank;
      RESHARD_ASSIGN_OR_RETURN(found, FindArray(holder));
      if (found.array != nullptr) break;
    }
    if (found.array == nullptr) return NotHeld(tensor, part);
  }
  const StoredArray& parameter = *found.array;
  if (parameter.kind != ArrayKind::kTensor || parameter.dtype != tensor.dtype ||
      parameter.shape != part.shape) {
    const auto told = placement_.Tell(tensor.name, 0);
    return MismatchError(fmt::format(
        "{}: expected {} {} as in the {}, found {} {}; do the {} belong to one checkpoint?",
        Where(found.table->file(), parameter.name), DTypeName(tensor.dtype), ToString(part.shape),
        told && told->dtype ? "metadata" : "other ranks",
        parameter.kind == ArrayKind::kMapTensor ? "a MapTensor" : DTypeName(parameter.dtype),
        ToString(parameter.shape), told && told->dtype ? "files" : "ranks"));
  }
  return PlacedPiece{rank,
                     found.table->file(),
                     std::move(part.box),
                     {parameter.content.begin(), parameter.content.end()}};
}

}  // namespace reshard
