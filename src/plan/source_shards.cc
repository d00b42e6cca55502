#include "src/plan/source_shards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
SourceShards::SourceShards(SourceFiles& files, IndexCache& indexes, const ConversionRule& rule,
                           std::map<int64_t, FileId> rank_files)
    : files_(files), indexes_(indexes), rule_(rule), rank_files_(std::move(rank_files)) {}

std::string SourceShards::Where(FileId file, std::string_view name) const {
  return fmt::format("{}: parameter {}", Escape(files_.path(file)), Quote(name));
}

bool SourceShards::HasFiles(int64_t stage) const {
  const int64_t first = rule_.SourceRank(stage, 0);
  const auto file = rank_files_.lower_bound(first);
  return file != rank_files_.end() && file->first < first + rule_.source_devices();
}

Result<IndexHandle> SourceShards::IndexOf(int64_t stage, int64_t local) const {
  const auto file = rank_files_.find(rule_.SourceRank(stage, local));
  if (file == rank_files_.end()) return IndexHandle();
  return indexes_.Get(file->second);
}

Result<const SourceShards::Census*> SourceShards::CensusOf(int64_t stage) const {
  const std::lock_guard lock(census_mutex_);
  if (const auto known = census_.find(stage); known != census_.end()) return &known->second;

  Census census;
  const int64_t first = rule_.SourceRank(stage, 0);
  const auto begin = rank_files_.lower_bound(first);
  const auto end = rank_files_.lower_bound(first + rule_.source_devices());
  const auto add = [&](int64_t rank, FileId file) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const IndexHandle index, indexes_.Get(file));
    ++census.files;
    for (const ParameterInfo& parameter : index->parameters()) {
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
      RESHARD_RETURN_IF_ERROR(add(file->first, file->second));
    }
  } else {
    for (auto file = end; file != begin;) {
      --file;
      RESHARD_RETURN_IF_ERROR(add(file->first, file->second));
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
  RESHARD_ASSIGN_OR_RETURN(IndexHandle index, IndexOf(stage, local));
  const ParameterInfo* parameter = index ? index->Find(name) : nullptr;
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

  SourceTensor tensor = Standalone(*parameter, stage, index->file());
  if (rule_.source() == nullptr || tensor.kind != ParameterKind::kTensor) return tensor;
  const StrategyStage& layouts = rule_.source()->stages()[static_cast<size_t>(stage)];
  const std::string where = Where(index->file(), name);
  RESHARD_ASSIGN_OR_RETURN(
      tensor.grid, ShardGrid::Make(*layouts.Find(name), tensor.shard_shape.size(),
                                   fmt::format("{}, {}", where, Escape(rule_.source()->path()))));
  RESHARD_ASSIGN_OR_RETURN(tensor.full_shape, tensor.grid.FullShape(tensor.shard_shape, where));
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
    RESHARD_ASSIGN_OR_RETURN(IndexHandle index, IndexOf(stage, preferred));
    if (index && index->Find(name) != nullptr) {
      return Holder{stage, rule_.SourceRank(stage, preferred), std::move(index)};
    }
  }
  for (const int64_t stage : stages) {
    RESHARD_ASSIGN_OR_RETURN(const Census* census, CensusOf(stage));
    const auto holders = census->holders.find(std::string(name));
    if (holders == census->holders.end()) continue;
    const int64_t local = holders->second.lowest;
    RESHARD_ASSIGN_OR_RETURN(IndexHandle index, IndexOf(stage, local));
    return Holder{stage, rule_.SourceRank(stage, local), std::move(index)};
  }
  return MismatchError(fmt::format("parameter {} is in no source file", Quote(name)));
}

SourceTensor SourceShards::Standalone(const ParameterInfo& parameter, int64_t stage, FileId file) {
  SourceTensor tensor;
  tensor.name = parameter.name;
  tensor.kind = parameter.kind;
  tensor.dtype = parameter.dtype;
  tensor.full_shape = parameter.shape;
  tensor.shard_shape = parameter.shape;
  tensor.stage = stage;
  tensor.file = file;
  tensor.grid = ShardGrid::Whole(parameter.shape.size());
  return tensor;
}

Result<std::vector<SourceShard>> SourceShards::Cover(const SourceTensor& tensor, const Box& box,
                                                     int64_t preferred) const {
  std::vector<SourceShard> shards;
  Status status;
  tensor.grid.ForEachOverlap(box, tensor.shard_shape, [&](const std::vector<int64_t>& parts) {
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
  for (const int64_t local : tensor.grid.Replicas(parts)) {
    RESHARD_ASSIGN_OR_RETURN(const IndexHandle index, IndexOf(tensor.stage, local));
    if (index && index->Find(tensor.name) != nullptr) {
      ranks.push_back(rule_.SourceRank(tensor.stage, local));
    }
  }
  return ranks;
}

Result<SourceShard> SourceShards::Locate(const SourceTensor& tensor,
                                         const std::vector<int64_t>& parts,
                                         int64_t preferred) const {
  const Box box = ShardGrid::BoxOfParts(parts, tensor.shard_shape);
  int64_t local = tensor.grid.RankOf(parts, preferred);
  RESHARD_ASSIGN_OR_RETURN(IndexHandle index, IndexOf(tensor.stage, local));
  const ParameterInfo* parameter = index ? index->Find(tensor.name) : nullptr;
  if (parameter == nullptr) {
    // Another replica, the lowest that has it.
    const int64_t first = rule_.SourceRank(tensor.stage, 0);
    const auto end = rank_files_.lower_bound(first + rule_.source_devices());
    for (auto file = rank_files_.lower_bound(first); file != end && parameter == nullptr; ++file) {
      local = file->first - first;
      if (tensor.grid.PartsOf(local) != parts) continue;
      RESHARD_ASSIGN_OR_RETURN(index, indexes_.Get(file->second));
      parameter = index->Find(tensor.name);
    }
    if (parameter == nullptr) {
      std::vector<std::string> ranks;
      for (const int64_t replica : tensor.grid.Replicas(parts)) {
        ranks.push_back(std::to_string(rule_.SourceRank(tensor.stage, replica)));
      }
      return MismatchError(fmt::format(
          "parameter {}: box {} of the full shape {} is in no source file; the source "
          "strategy {} puts it in rank {}: add the folder of one of these ranks; "
          "or are the two strategies swapped?",
          Quote(tensor.name), ToString(box), ToString(tensor.full_shape),
          rule_.source() == nullptr ? "" : Escape(rule_.source()->path()), FirstOf(ranks)));
    }
  }
  const std::string where = Where(index->file(), tensor.name);
  if (parameter->kind != ParameterKind::kTensor || parameter->dtype != tensor.dtype ||
      parameter->shape != tensor.shard_shape) {
    return MismatchError(fmt::format(
        "{}: expected {} {} as in the other ranks, found {} {}; are these ranks of one checkpoint?",
        where, DTypeName(tensor.dtype), ToString(tensor.shard_shape),
        parameter->kind == ParameterKind::kMap ? "a map" : DTypeName(parameter->dtype),
        ToString(parameter->shape)));
  }
  return SourceShard{rule_.SourceRank(tensor.stage, local), index->file(), box, parameter->content};
}

}  // namespace reshard
