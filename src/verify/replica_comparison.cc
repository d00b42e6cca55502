#include "src/verify/replica_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/status_macros.h"
#include "src/digest/xxh3.h"
#include "src/os/worker_pool.h"
#include "src/source/in_steps.h"
#include "src/tensor/laid_out.h"
#include "src/verify/copied_bytes.h"

namespace reshard {
namespace {

constexpr size_t kListed = 20;

// The number of a part in row-major order, and back.
uint64_t NumberOf(const std::vector<int64_t>& parts, const std::vector<int64_t>& cuts) {
  uint64_t number = 0;
  for (size_t d = 0; d < cuts.size(); ++d) {
    number = number * static_cast<uint64_t>(cuts[d]) + static_cast<uint64_t>(parts[d]);
  }
  return number;
}

std::vector<int64_t> PartsOf(uint64_t number, const std::vector<int64_t>& cuts) {
  std::vector<int64_t> parts(cuts.size());
  for (size_t d = cuts.size(); d-- > 0;) {
    parts[d] = static_cast<int64_t>(number % static_cast<uint64_t>(cuts[d]));
    number /= static_cast<uint64_t>(cuts[d]);
  }
  return parts;
}

bool HasReplicas(const ShardGrid& grid) {
  int64_t parts = 1;
  for (const int64_t cut : grid.cuts()) parts *= cut;
  return parts < grid.devices();
}

// The replicas of one source stage. Files may be added from several threads.
class StageReplicas {
 public:
  StageReplicas(SourceFiles& files, const SourceShards& shards, const ParameterChoice& choice,
                int64_t stage)
      : files_(files),
        shards_(shards),
        stage_(stage),
        layouts_(shards.rule().source()->stages()[static_cast<size_t>(stage)]),
        seen_(layouts_.layouts().size()) {
    for (size_t i = 0; i < seen_.size(); ++i) {
      const std::string& name = layouts_.layouts()[i].name;
      if (choice.Takes(name)) by_name_.emplace(name, i);
    }
  }

  // Digests what the file of local rank `local` shares with other ranks.
  Status AddFile(int64_t local, const SharedWork& work, const std::stop_token& stop);

  // Only when no file is added any more: adds what was found to `report`.
  Status Report(ReplicaReport& report) const;

 private:
  // What was seen of one parameter.
  struct Seen {
    struct Part {
      Digest128 digest;    // the first one that came
      uint64_t bytes = 0;  // of the first one
      bool repeated = false;
    };
    std::optional<size_t> dims;
    std::unordered_map<uint64_t, Part> parts;  // by number
    uint64_t shards = 0;                       // that are replicas of one another, and their bytes
    uint64_t bytes = 0;
    std::set<uint64_t> differing;  // parts that came with several digests
  };

  Result<ShardGrid> GridOf(size_t layout, const ParameterInfo& parameter, FileId file) const {
    return ShardGrid::Make(layouts_.layouts()[layout].layout, parameter.shape.size(),
                           fmt::format("{}, {}", shards_.Where(file, parameter.name),
                                       shards_.rule().source()->path()));
  }
  Result<Digest128> DigestShard(const ParameterInfo& parameter, FileId file, const SharedWork& work,
                                const std::stop_token& stop) const;
  Status Add(size_t layout, const ParameterInfo& parameter, FileId file, uint64_t part,
             const Digest128& digest);
  Status ComparePart(const std::string& name, const ShardGrid& grid,
                     const std::vector<int64_t>& parts, ReplicaDifference& difference) const;
  // Returns the offset of the first byte that differs, if one does.
  Result<std::optional<uint64_t>> FirstDifference(const ParameterInfo& a, FileId file_a,
                                                  const ParameterInfo& b, FileId file_b) const;

  SourceFiles& files_;
  const SourceShards& shards_;
  const int64_t stage_;
  const StrategyStage& layouts_;
  std::unordered_map<std::string_view, size_t> by_name_;  // places in layouts() of the chosen
  std::mutex mutex_;
  std::vector<Seen> seen_;  // as layouts(); guarded by mutex_
};

Status StageReplicas::AddFile(int64_t local, const SharedWork& work, const std::stop_token& stop) {
  RESHARD_ASSIGN_OR_RETURN(const IndexHandle index, shards_.IndexOf(stage_, local));
  uint64_t read = 0;
  for (const ParameterInfo& parameter : index->parameters()) {
    const auto layout = by_name_.find(parameter.name);
    if (layout == by_name_.end() || parameter.kind != ParameterKind::kTensor) continue;
    RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid,
                             GridOf(layout->second, parameter, index->file()));
    if (!HasReplicas(grid)) continue;
    RESHARD_ASSIGN_OR_RETURN(const Digest128 digest,
                             DigestShard(parameter, index->file(), work, stop));
    read += parameter.bytes;
    RESHARD_RETURN_IF_ERROR(Add(layout->second, parameter, index->file(),
                                NumberOf(grid.PartsOf(local), grid.cuts()), digest));
  }
  if (work.progress) work.progress(index->file_size() - read);
  return {};
}

Result<Digest128> StageReplicas::DigestShard(const ParameterInfo& parameter, FileId file,
                                             const SharedWork& work,
                                             const std::stop_token& stop) const {
  Xxh3 digest;
  digest.Update(fmt::format("{} {}\n", DTypeName(parameter.dtype), ToString(parameter.shape)));
  const auto update = [&](ByteRange part) -> Status {
    RESHARD_ASSIGN_OR_RETURN(const Window window, files_.Open(file, part.offset, part.length));
    return window.Read([&](const std::byte* data) { digest.Update({data, part.length}); });
  };
  for (const ByteRange& range : parameter.content) {
    RESHARD_RETURN_IF_ERROR(InSteps(range, kWindowBytes, stop, work.progress, update));
  }
  return digest.Digest();
}

Status StageReplicas::Add(size_t layout, const ParameterInfo& parameter, FileId file, uint64_t part,
                          const Digest128& digest) {
  const std::scoped_lock lock(mutex_);
  Seen& seen = seen_[layout];
  if (!seen.dims) seen.dims = parameter.shape.size();
  if (*seen.dims != parameter.shape.size()) {
    return MismatchError(
        fmt::format("{}: has {} dimensions, but {} in the file of another rank; are these ranks of "
                    "one checkpoint?",
                    shards_.Where(file, parameter.name), parameter.shape.size(), *seen.dims));
  }
  const auto [place, is_new] = seen.parts.try_emplace(part, Seen::Part{digest, parameter.bytes});
  if (is_new) return {};
  Seen::Part& first = place->second;
  if (!first.repeated) {
    ++seen.shards;
    seen.bytes += first.bytes;
  }
  first.repeated = true;
  ++seen.shards;
  seen.bytes += parameter.bytes;
  if (first.digest != digest) seen.differing.insert(part);
  return {};
}

Status StageReplicas::Report(ReplicaReport& report) const {
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Seen& seen = seen_[i];
    if (seen.shards > 0) ++report.compared;
    report.shards += seen.shards;
    report.bytes += seen.bytes;
    if (seen.differing.empty()) continue;
    ++report.differing;
    if (report.differences.size() == kListed) continue;
    const auto& [name, layout] = layouts_.layouts()[i];
    RESHARD_ASSIGN_OR_RETURN(const ShardGrid grid,
                             ShardGrid::Make(layout, *seen.dims, shards_.rule().source()->path()));
    ReplicaDifference difference{name, stage_, {}, 0};
    for (const uint64_t part : seen.differing) {
      RESHARD_RETURN_IF_ERROR(ComparePart(name, grid, PartsOf(part, grid.cuts()), difference));
    }
    report.differences.push_back(std::move(difference));
  }
  return {};
}

Status StageReplicas::ComparePart(const std::string& name, const ShardGrid& grid,
                                  const std::vector<int64_t>& parts,
                                  ReplicaDifference& difference) const {
  IndexHandle reference;
  int64_t reference_rank = 0;
  for (const int64_t local : grid.Replicas(parts)) {
    RESHARD_ASSIGN_OR_RETURN(IndexHandle index, shards_.IndexOf(stage_, local));
    const ParameterInfo* parameter = index ? index->Find(name) : nullptr;
    if (parameter == nullptr || parameter->kind != ParameterKind::kTensor) continue;
    const int64_t rank = shards_.rule().SourceRank(stage_, local);
    if (!reference) {
      reference = std::move(index);
      reference_rank = rank;
      continue;
    }
    const ParameterInfo& first = *reference->Find(name);
    ReplicaPair pair{rank, reference_rank, false, 0};
    if (first.dtype != parameter->dtype || first.shape != parameter->shape) {
      pair.other_type = true;
    } else {
      RESHARD_ASSIGN_OR_RETURN(
          const auto offset, FirstDifference(first, reference->file(), *parameter, index->file()));
      if (!offset) continue;
      pair.offset = *offset;
    }
    ++difference.pair_count;
    if (difference.pairs.size() < kListed) difference.pairs.push_back(pair);
  }
  return {};
}

Result<std::optional<uint64_t>> StageReplicas::FirstDifference(const ParameterInfo& a,
                                                               FileId file_a,
                                                               const ParameterInfo& b,
                                                               FileId file_b) const {
  const std::vector<BlockCopy> copies_a = LayOut(file_a, a.content);
  const std::vector<BlockCopy> copies_b = LayOut(file_b, b.content);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kComparisonStepBytes);
  for (uint64_t offset = 0; offset < a.bytes; offset += kComparisonStepBytes) {
    const std::span<std::byte> bytes(buffer.get(),
                                     std::min(kComparisonStepBytes, a.bytes - offset));
    RESHARD_RETURN_IF_ERROR(CollectBytes(files_, copies_a, offset, bytes));
    ByteDifference difference;
    RESHARD_RETURN_IF_ERROR(CompareBytes(files_, copies_b, offset, bytes, difference));
    if (difference.count > 0) return std::optional(difference.target);
  }
  return std::optional<uint64_t>();
}

}  // namespace

Result<ReplicaReport> CompareReplicas(SourceFiles& files, const SourceShards& shards,
                                      const ParameterChoice& choice,
                                      std::span<const int64_t> stages, const SharedWork& work) {
  ReplicaReport report;
  const ConversionRule& rule = shards.rule();
  if (rule.source() == nullptr) return report;
  std::map<int64_t, StageReplicas> replicas;
  std::vector<std::pair<StageReplicas*, int64_t>> ranks;  // with the local rank
  for (const int64_t stage : stages) {
    const auto place = replicas.try_emplace(stage, files, shards, choice, stage);
    if (!place.second) continue;
    const int64_t first = rule.SourceRank(stage, 0);
    const auto end = shards.rank_files().lower_bound(first + rule.source_devices());
    for (auto file = shards.rank_files().lower_bound(first); file != end; ++file) {
      ranks.emplace_back(&place.first->second, file->first - first);
    }
  }
  const auto add = [&](size_t task, const std::stop_token& stop) {
    const auto [stage, local] = ranks[task];
    return stage->AddFile(local, work, stop);
  };
  RESHARD_RETURN_IF_ERROR(RunWorkers(work.workers, ranks.size(), add, work.stop));
  for (const auto& [stage, found] : replicas) RESHARD_RETURN_IF_ERROR(found.Report(report));
  return report;
}

}  // namespace reshard
