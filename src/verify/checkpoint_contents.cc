#include "src/verify/checkpoint_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "reshard/strategy.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/digest/logical_digest.h"
#include "src/io/shared_work.h"
#include "src/mindspore/layout_grid.h"
#include "src/mindspore/mindspore_target.h"
#include "src/mindspore/optimizer_copy.h"
#include "src/plan/make_copies.h"
#include "src/source/shard_grid.h"
#include "src/tensor/block_copy.h"
#include "src/verify/copied_bytes.h"
#include "src/verify/listed_replicas.h"
#include "src/verify/rank_file_digests.h"
#include "src/verify/replica_comparison.h"

namespace reshard {
namespace {

// Whether a layout of any stage cuts the parameter.
bool IsCut(const SourceTensor& parameter, const Strategy& strategy) {
  return std::any_of(strategy.stages().begin(), strategy.stages().end(),
                     [&](const Strategy::Stage& stage) {
                       const ParameterLayout* const layout = stage.Find(parameter.name);
                       if (layout == nullptr) return false;
                       const auto grid = MakeGrid(*layout, parameter.full_shape.size(), "");
                       return !grid.ok() || grid->parts() > 1;
                     });
}

// Reads one replica of each shard.
Result<CheckpointContents> ReadOneReplica(const Source& source,
                                          const std::vector<SourceTensor>& tensors,
                                          const SharedWork& work) {
  CheckpointContents contents;
  std::vector<uint64_t> sizes;
  sizes.reserve(tensors.size());
  contents.values.reserve(tensors.size());
  for (const SourceTensor& tensor : tensors) {
    contents.values.push_back({{tensor.Info(), {}, {}}});
    sizes.push_back(tensor.Bytes());
    contents.bytes += sizes.back();
  }
  std::mutex mutex;  // guards the digests
  const auto add = [&](size_t index, ByteRange piece, const std::stop_token& stop) -> Status {
    const SourceTensor& tensor = tensors[index];
    RESHARD_ASSIGN_OR_RETURN(const std::vector<BlockCopy> copies,
                             CopiesOf(source, tensor, Box::Whole(tensor.full_shape)));
    LogicalHasher hasher;
    Digest128 sum;
    RESHARD_RETURN_IF_ERROR(InSteps(
        piece, kDigestStepBytes, stop, work.progress,
        [&](ByteRange part) { return AddCopied(source.files(), copies, part, hasher, sum); }));
    const std::scoped_lock lock(mutex);
    contents.values[index].front().digest ^= sum;
    return {};
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, add));
  return contents;
}

std::span<const ByteRange> ContentOf(const StoredArray& info) {
  return info.kind == ArrayKind::kMapTensor ? info.framed : info.content;
}

class ContentsReader {
 public:
  ContentsReader(const Source& source, const Strategy* strategy, const ParameterChoice& choice)
      : source_(source), strategy_(strategy) {
    if (strategy == nullptr) return;
    for (const int64_t stage : source.ranks().taken_stages) {
      stages_.try_emplace(stage, source, *strategy, choice, stage);
    }
  }

  Result<CheckpointContents> Read(const std::vector<SourceTensor>& parameters,
                                  const SharedWork& work) {
    parameters_ = parameters;
    own_.resize(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      by_name_.emplace(parameters_[i].name, i);
      cut_.push_back(!parameters_[i].rank && IsCut(parameters_[i], *strategy_));
    }
    const DigestUse use = {
        [&](const RankFileOfStage& rank, const StoredArray& info, std::vector<BlockCopy>& copies) {
          return Places(rank, info, copies);
        },
        [&](const RankFileOfStage& rank, const StoredArray& info, size_t number,
            const Digest128& digest) { return Take(rank, info, number, digest); }};
    RESHARD_RETURN_IF_ERROR(
        DigestRankFiles(source_, FilesOfStages(source_, source_.ranks().taken_stages), use, work));
    return Finish();
  }

 private:
  // Ranks, as ranges: mostly they are one.
  class RankSet {
   public:
    // Adds one that is not there.
    void Add(int64_t rank) {
      int64_t last = rank;
      auto next = ranges_.lower_bound(rank);
      if (next != ranges_.end() && next->first == rank + 1) {
        last = next->second;
        next = ranges_.erase(next);
      }
      ++count_;
      if (next != ranges_.begin() && std::prev(next)->second == rank - 1) {
        std::prev(next)->second = last;
      } else {
        ranges_.emplace_hint(next, rank, last);
      }
    }

    uint64_t count() const { return count_; }
    std::vector<int64_t> List() const {
      std::vector<int64_t> ranks;
      for (const auto& [first, last] : ranges_) {
        for (int64_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
      }
      return ranks;
    }

   private:
    std::map<int64_t, int64_t> ranges_;  // the last rank by the first
    uint64_t count_ = 0;
  };

  // The values of a parameter that no layout cuts, and the ranks that hold them.
  using OwnByValue = std::map<HeldValue, RankSet, HeldValue::Less>;

  // When all is read.
  Result<CheckpointContents> Finish() {
    CheckpointContents contents;
    contents.bytes = bytes_;
    contents.values.resize(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      std::vector<HeldValue>& values = contents.values[i];
      if (!cut_[i]) {
        values = OwnValues(i, contents.replicas);
        if (values.size() > 1) contents.replicas.own_values.push_back(parameters_[i].name);
        continue;
      }
      RESHARD_ASSIGN_OR_RETURN(HeldValue value, CutValue(parameters_[i]));
      values.push_back(std::move(value));
    }
    for (const auto& [number, stage] : stages_) {
      const auto original = [&, number = number](std::string_view name) {
        return OriginalOf(name, number, contents);
      };
      RESHARD_RETURN_IF_ERROR(stage.Report(original, contents.replicas));
    }
    return contents;
  }

  // Returns the values of a parameter that no layout cuts.
  std::vector<HeldValue> OwnValues(size_t parameter, ReplicaReport& replicas) const {
    std::vector<HeldValue> values;
    uint64_t shards = 0;
    uint64_t bytes = 0;
    for (const auto& [value, ranks] : own_[parameter]) {
      shards += ranks.count();
      bytes += ranks.count() * value.bytes;
      values.push_back(value);
      values.back().name = parameters_[parameter].name;
      if (own_[parameter].size() > 1) values.back().ranks = ranks.List();
    }
    if (values.size() > 1) {
      std::sort(values.begin(), values.end(), [](const HeldValue& a, const HeldValue& b) {
        return a.ranks.front() < b.ranks.front();
      });
    }
    if (!parameters_[parameter].rank && shards > 1) {
      ++replicas.compared;
      replicas.shards += shards;
      replicas.bytes += bytes;
    }
    return values;
  }

  // The numbers of parameters. If each rank's value counts by itself: the place in parameters_. If
  // a layout of the stage cuts it: its place among these layouts, plus the size of parameters_.
  Result<std::optional<size_t>> Places(const RankFileOfStage& rank, const StoredArray& info,
                                       std::vector<BlockCopy>& copies) {
    const auto own = by_name_.find(info.name);
    if (own != by_name_.end() && !cut_[own->second]) {
      copies = LayOut(rank.file, ContentOf(info));
      return std::optional(own->second);
    }
    const auto stage = stages_.find(rank.stage);
    if (stage == stages_.end() || info.kind != ArrayKind::kTensor) return std::optional<size_t>();
    const std::optional<size_t> layout = stage->second.Find(info.name);
    // in this stage, a parameter that only another stage's layouts cut has no meaning
    if (!layout) return layout;
    RESHARD_RETURN_IF_ERROR(stage->second.AddPlaces(*layout, rank, info, copies));
    return std::optional(parameters_.size() + *layout);
  }

  Status Take(const RankFileOfStage& rank, const StoredArray& info, size_t number,
              const Digest128& digest) {
    uint64_t bytes = 0;
    for (const ByteRange& range : ContentOf(info)) bytes += range.length;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (number >= parameters_.size()) {
      stages_.at(rank.stage).Add(number - parameters_.size(), rank, info, digest);
      return {};
    }
    const std::scoped_lock lock(mutex_);
    AddOwn(rank, info, bytes, digest, own_[number]);
    return {};
  }

  void AddOwn(const RankFileOfStage& rank, const StoredArray& info, uint64_t bytes,
              const Digest128& digest, OwnByValue& values) const {
    HeldValue value;
    value.kind = info.kind;
    value.digest = digest;
    if (info.kind != ArrayKind::kMapTensor) value.dtype = info.dtype;
    if (info.kind == ArrayKind::kTensor || info.kind == ArrayKind::kPacked) {
      value.shape = info.shape;
    }
    value.bytes = bytes;
    values[value].Add(source_.RankOf(rank.stage, rank.local));
  }

  // Returns the expected value for a stage's shards of a parameter, if a lower stage holds it too.
  std::optional<StageShards::Original> OriginalOf(std::string_view name, int64_t stage,
                                                  const CheckpointContents& contents) const {
    const auto place = by_name_.find(name);
    if (place == by_name_.end()) return std::nullopt;
    const SourceTensor& parameter = parameters_[place->second];
    if (parameter.stage == stage) return std::nullopt;
    return StageShards::Original{&parameter, contents.values[place->second].front().digest};
  }

  Result<HeldValue> CutValue(const SourceTensor& tensor) const {
    std::optional<Digest128> sum;
    if (tensor.Bytes() == 0) {
      sum = Digest128();
    } else {
      sum = stages_.at(tensor.stage).SumOf(tensor);
    }
    if (!sum) {
      // Says which part is in no file, or of another type.
      RESHARD_RETURN_IF_ERROR(CopiesOf(source_, tensor, Box::Whole(tensor.full_shape)).status());
      return MismatchError(
          fmt::format("parameter {}: ranks hold shards of different dtypes or shapes; do the ranks "
                      "belong to one checkpoint?",
                      Quote(tensor.name)));
    }
    return HeldValue{tensor.Info(), *sum, {}};
  }

  const Source& source_;
  const Strategy* const strategy_;  // null: none
  std::span<const SourceTensor> parameters_;
  std::unordered_map<std::string_view, size_t> by_name_;  // places in parameters_
  std::vector<bool> cut_;                                 // by a layout, as parameters_
  std::map<int64_t, StageShards> stages_;                 // none without a strategy
  std::atomic<uint64_t> bytes_ = 0;                       // that were read
  std::mutex mutex_;
  std::vector<OwnByValue> own_;  // as parameters_; guarded by mutex_
};

}  // namespace

Result<CheckpointContents> ReadContents(const Source& source, const Strategy* strategy,
                                        const ParameterChoice& choice,
                                        const std::vector<SourceTensor>& parameters,
                                        bool one_replica, const SharedWork& work) {
  // Files have other names for tensors whose parts are listed.
  const bool are_listed = source.placement().all_tensors() != nullptr;
  if (!one_replica && !are_listed) {
    return ContentsReader(source, strategy, choice).Read(parameters, work);
  }
  ReplicaReport replicas;
  if (!one_replica) {
    RESHARD_ASSIGN_OR_RETURN(replicas,
                             CompareListedReplicas(source, choice, {work.workers, work.stop}));
  }
  RESHARD_ASSIGN_OR_RETURN(CheckpointContents contents, ReadOneReplica(source, parameters, work));
  contents.replicas = std::move(replicas);
  return contents;
}

Result<std::vector<SourceTensor>> ListTensors(const Source& source, const ConversionRule& rule,
                                              const SharedWork& work, PlanFindings& findings) {
  const MindSporeTarget target(source, rule, "", Selection::Unmatched::kCopy);
  target.IndexSources(std::array{int64_t{0}}, Indexers(work.workers), work.stop);
  RESHARD_ASSIGN_OR_RETURN(const MindSporeTarget::Selected selection, target.Select(0, findings));
  std::vector<SourceTensor> tensors;
  tensors.reserve(selection.converted.size() + selection.copied.size());
  size_t next = 0;
  for (const auto* names : {&selection.converted, &selection.copied}) {
    for (const std::string& name : *names) {
      RESHARD_ASSIGN_OR_RETURN(SourceTensor tensor, source.DescribeFull(name, next));
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

bool HeldValue::Less::operator()(const HeldValue& a, const HeldValue& b) const {
  const auto key = [](const HeldValue& value) {
    return std::tie(value.digest.high, value.digest.low, value.bytes, value.kind, value.dtype,
                    value.shape);
  };
  return key(a) < key(b);
}

}  // namespace reshard
