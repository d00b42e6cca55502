#include "src/verify/replica_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/layout_grid.h"
#include "src/plan/make_copies.h"
#include "src/plan/training_counter.h"
#include "src/tensor/block_copy.h"
#include "src/tensor/byte_box.h"
#include "src/verify/listed_replicas.h"

namespace reshard {
namespace {

constexpr size_t kListed = 20;

// The place of a shard in the full tensor. Takes no memory on the heap, as there are very many
// shards.
class FullPlace {
 public:
  // No value if a size does not fit 63 bits.
  static std::optional<FullPlace> Of(const ShardGrid& grid, int64_t rank, const Shape& shard) {
    std::optional<FullPlace> place(FullPlace(shard.size()));
    grid.PartsOf(rank, {place->begin_.data(), place->dims_});
    for (size_t d = 0; d < shard.size(); ++d) {
      const auto size = CheckedMul(shard[d], grid.cuts()[d]);
      if (!size) return std::nullopt;
      place->full_[d] = *size;
      place->begin_[d] *= shard[d];
    }
    return place;
  }

  std::span<const int64_t> begin() const { return {begin_.data(), dims_}; }
  std::span<const int64_t> full() const { return {full_.data(), dims_}; }

 private:
  explicit FullPlace(size_t dims) : dims_(dims) {}

  size_t dims_;
  std::array<int64_t, kMaxDims> begin_;  // only the first dims_ are ever set, as of full_
  std::array<int64_t, kMaxDims> full_;
};

void AddPair(const ReplicaReport::Pair& pair, ReplicaReport::Difference& difference) {
  ++difference.pair_count;
  if (difference.pairs.size() < kListed) difference.pairs.push_back(pair);
}

}  // namespace

StageShards::StageShards(const Source& source, const Strategy& strategy,
                         const ParameterChoice& choice, int64_t stage)
    : source_(source),
      strategy_(strategy),
      stage_(stage),
      layouts_(strategy.stages()[static_cast<size_t>(stage)]),
      seen_(layouts_.size()) {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const std::string_view name = layouts_[i].name;
    if (choice.Takes(name)) by_name_.emplace(name, i);
  }
}

std::optional<size_t> StageShards::Find(std::string_view name) const {
  const auto place = by_name_.find(name);
  if (place == by_name_.end()) return std::nullopt;
  return place->second;
}

Result<const ShardGrid*> StageShards::GridOf(size_t layout, const RankFileOfStage& rank,
                                             const StoredArray& parameter) {
  const std::scoped_lock lock(MutexOf(layout));
  std::optional<ShardGrid>& grid = seen_[layout].grid;
  const size_t dims = parameter.shape.size();
  if (!grid) {
    RESHARD_ASSIGN_OR_RETURN(
        grid, MakeGrid(layouts_[layout].layout, dims,
                       fmt::format("{}, {}", source_.Where(rank.file, parameter.name),
                                   Escape(strategy_.path()))));
  }
  if (grid->cuts().size() != dims) {
    return MismatchError(
        fmt::format("{}: has {} dimensions, but {} in the file of another rank; are these ranks of "
                    "one checkpoint?",
                    source_.Where(rank.file, parameter.name), dims, grid->cuts().size()));
  }
  return &*grid;
}

Result<bool> StageShards::HasReplicas(size_t layout, const RankFileOfStage& rank,
                                      const StoredArray& parameter) {
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid* const grid, GridOf(layout, rank, parameter));
  return grid->parts() < grid->devices();
}

Status StageShards::AddPlaces(size_t layout, const RankFileOfStage& rank,
                              const StoredArray& parameter, std::vector<BlockCopy>& copies) {
  RESHARD_ASSIGN_OR_RETURN(const ShardGrid* const grid, GridOf(layout, rank, parameter));
  const std::optional<FullPlace> place = FullPlace::Of(*grid, rank.local, parameter.shape);
  if (!place || !TensorBytes(place->full(), ItemBytes(parameter.dtype))) {
    return MismatchError(fmt::format("{}: the full tensor of shards {} has too many bytes",
                                     source_.Where(rank.file, parameter.name),
                                     ToString(parameter.shape)));
  }
  const ByteDims begin(place->begin(), parameter.dtype, 0);
  const ByteDims extent(parameter.shape, parameter.dtype,
                        static_cast<int64_t>(ItemBytes(parameter.dtype)));
  const ByteDims full(place->full(), parameter.dtype, extent.span().back());
  if (parameter.content.size() == 1) {  // as most are
    const ByteRange value = parameter.content.front();
    if (value.length == 0) return {};
    copies.push_back(MakeBlockCopy(
        {begin.span(), extent.span(), static_cast<int64_t>(value.offset)}, full.span()));
    copies.back().source = rank.file;
    return {};
  }
  const Box shard = {{begin.span().begin(), begin.span().end()},
                     {extent.span().begin(), extent.span().end()}};
  const PlacedBox target = {Box::Whole({full.span().begin(), full.span().end()}), 0};
  uint64_t at = 0;  // of the Value in the bytes of the shard
  for (const ByteRange& value : parameter.content) {
    const PlacedBox source = {shard, static_cast<int64_t>(value.offset - at)};
    for (const Box& box : BoxesOfRange(shard, {at, value.length})) {
      copies.push_back(MakeBlockCopy(box, source, target));
      copies.back().source = rank.file;
    }
    at += value.length;
  }
  return {};
}

void StageShards::Add(size_t layout, const RankFileOfStage& rank, const StoredArray& parameter,
                      const Digest128& digest) {
  const std::scoped_lock lock(MutexOf(layout));
  Seen& seen = seen_[layout];
  const int64_t number = seen.grid->PartNumberOf(rank.local);
  const auto known = std::find_if(seen.types.begin(), seen.types.end(), [&](const Type& type) {
    return type.dtype == parameter.dtype && type.bytes == parameter.bytes &&
           type.shape == parameter.shape;
  });
  const auto type_number = static_cast<uint32_t>(known - seen.types.begin());
  if (known == seen.types.end()) {
    seen.types.push_back({parameter.dtype, parameter.shape, parameter.bytes});
  }
  const Part part = {digest, rank.local, type_number, false};
  const auto [place, is_new] = seen.parts.try_emplace(number, part);
  if (is_new) return;
  Part& other = place->second;
  if (!other.repeated) {
    ++seen.shards;
    seen.bytes += seen.types[other.type].bytes;
  }
  ++seen.shards;
  seen.bytes += parameter.bytes;
  if (other.digest != digest || other.type != type_number) seen.differing.insert(number);
  if (rank.local < other.local) other = part;
  other.repeated = true;
}

std::optional<Digest128> StageShards::SumOf(const SourceTensor& tensor) const {
  const Seen& seen = seen_[*Find(tensor.name)];
  if (!seen.grid || static_cast<int64_t>(seen.parts.size()) != seen.grid->parts()) {
    return std::nullopt;
  }
  Digest128 sum;
  for (const auto& [number, part] : seen.parts) {
    const Type& type = seen.types[part.type];
    if (type.dtype != tensor.dtype || type.shape != tensor.shard_shape) return std::nullopt;
    sum ^= part.digest;
  }
  return sum;
}

std::optional<bool> StageShards::IsOriginal(const Seen& seen, const Original& original) const {
  if (static_cast<int64_t>(seen.parts.size()) != seen.grid->parts()) return std::nullopt;
  const SourceTensor& tensor = *original.parameter;
  Digest128 sum;
  for (const auto& [number, part] : seen.parts) {
    const Type& type = seen.types[part.type];
    const auto full = seen.grid->FullShape(type.shape, "");
    if (type.dtype != tensor.dtype || !full.ok() || *full != tensor.full_shape) return false;
    sum ^= part.digest;
  }
  return sum == original.digest;
}

Status StageShards::Report(const FindOriginal& find_original, ReplicaReport& report) const {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Seen& seen = seen_[i];
    if (seen.parts.empty()) continue;
    const std::string name(layouts_[i].name);
    uint64_t shards = seen.shards;
    report.bytes += seen.bytes;
    std::optional<Original> original;
    if (find_original) original = find_original(name);
    std::optional<bool> is_original = true;
    if (original) {
      is_original = IsOriginal(seen, *original);
      for (const auto& [number, part] : seen.parts) {
        if (part.repeated) continue;
        ++shards;
        report.bytes += seen.types[part.type].bytes;
      }
    }
    report.shards += shards;
    if (shards > 0) ++report.compared;
    if (seen.differing.empty() && is_original == true) continue;
    if (IsAccumulatedGradient(name)) {
      report.own_values.push_back(name);
      continue;
    }
    const bool listed = report.differences.size() < kListed;
    if (listed || !is_original) {
      ReplicaReport::Difference difference{name, stage_, {}, 0};
      for (const int64_t part : seen.differing) {
        RESHARD_RETURN_IF_ERROR(
            ComparePart(name, *seen.grid, PartAt(part, seen.grid->cuts()), difference));
      }
      if (is_original != true) {
        RESHARD_RETURN_IF_ERROR(CompareWithOriginal(seen, *original->parameter, difference));
      }
      if (difference.pair_count == 0) continue;  // all existing parts equal the original
      if (listed) report.differences.push_back(std::move(difference));
    }
    ++report.differing;
  }
  return {};
}

Status StageShards::ComparePart(const std::string& name, const ShardGrid& grid,
                                const std::vector<int64_t>& parts,
                                ReplicaReport::Difference& difference) const {
  TableHandle reference;
  int64_t reference_rank = 0;
  for (const int64_t local : grid.Replicas(parts)) {
    RESHARD_ASSIGN_OR_RETURN(TableHandle index, source_.TableOf(stage_, local));
    const StoredArray* parameter = index ? index->Find(name) : nullptr;
    if (parameter == nullptr || parameter->kind != ArrayKind::kTensor) continue;
    const int64_t rank = source_.RankOf(stage_, local);
    if (!reference) {
      reference = std::move(index);
      reference_rank = rank;
      continue;
    }
    const StoredArray& first = *reference->Find(name);
    ReplicaReport::Pair pair{rank, reference_rank, false, 0};
    if (first.dtype != parameter->dtype || first.shape != parameter->shape) {
      pair.other_type = true;
    } else {
      RESHARD_ASSIGN_OR_RETURN(
          const auto byte,
          FirstDifference(source_.files(), LayOut(reference->file(), first.content),
                          LayOut(index->file(), parameter->content), first.bytes, {}));
      if (!byte) continue;
      pair.offset = byte->target;
    }
    AddPair(pair, difference);
  }
  return {};
}

Status StageShards::CompareWithOriginal(const Seen& seen, const SourceTensor& tensor,
                                        ReplicaReport::Difference& difference) const {
  const auto rank_of = [&](FileId file) {
    const auto& files = source_.ranks().files;
    return std::find_if(files.begin(), files.end(),
                        [&](const auto& rank) { return rank.second == file; })
        ->first;
  };
  std::map<int64_t, const Part*> by_rank;
  for (const auto& [number, part] : seen.parts) by_rank.emplace(part.local, &part);
  for (const auto& [local, part] : by_rank) {
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, source_.TableOf(stage_, local));
    const StoredArray& parameter = *index->Find(tensor.name);
    ReplicaReport::Pair pair{source_.RankOf(stage_, local), rank_of(tensor.file), false, 0};
    const auto full = seen.grid->FullShape(parameter.shape, "");
    if (parameter.dtype != tensor.dtype || !full.ok() || *full != tensor.full_shape) {
      pair.other_type = true;
    } else {
      RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies,
                               CopiesOf(source_, tensor, seen.grid->BoxOf(local, parameter.shape)));
      RESHARD_ASSIGN_OR_RETURN(
          const auto byte,
          FirstDifference(source_.files(), copies, LayOut(index->file(), parameter.content),
                          parameter.bytes, {}));
      if (!byte) continue;
      pair.reference = rank_of(byte->file);
      pair.offset = byte->target;
    }
    AddPair(pair, difference);
  }
  return {};
}

Result<ReplicaReport> CompareReplicas(const Source& source, const Strategy* strategy,
                                      const ParameterChoice& choice,
                                      std::span<const int64_t> stages, const SharedWork& work) {
  ReplicaReport report;
  if (strategy == nullptr) return CompareListedReplicas(source, choice, work);
  std::map<int64_t, StageShards> by_stage;
  for (const int64_t stage : stages) by_stage.try_emplace(stage, source, *strategy, choice, stage);
  const auto places = [&](const RankFileOfStage& rank, const StoredArray& parameter,
                          std::vector<BlockCopy>& copies) -> Result<std::optional<size_t>> {
    StageShards& stage = by_stage.at(rank.stage);
    const std::optional<size_t> layout = stage.Find(parameter.name);
    if (!layout || parameter.kind != ArrayKind::kTensor) return std::optional<size_t>();
    RESHARD_ASSIGN_OR_RETURN(const bool has_replicas, stage.HasReplicas(*layout, rank, parameter));
    if (!has_replicas) return std::optional<size_t>();
    RESHARD_RETURN_IF_ERROR(stage.AddPlaces(*layout, rank, parameter, copies));
    return layout;
  };
  const auto take = [&](const RankFileOfStage& rank, const StoredArray& parameter, size_t layout,
                        const Digest128& digest) -> Status {
    by_stage.at(rank.stage).Add(layout, rank, parameter, digest);
    return {};
  };
  RESHARD_RETURN_IF_ERROR(
      DigestRankFiles(source, FilesOfStages(source, stages), {places, take}, work));
  for (const auto& [number, stage] : by_stage) {
    RESHARD_RETURN_IF_ERROR(stage.Report(nullptr, report));
  }
  return report;
}

}  // namespace reshard
