#include "src/verify/checkpoint_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <semaphore>
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
#include "src/verify/rank_file_digests.h"
#include "src/verify/replica_comparison.h"

namespace reshard {
namespace {

// Whether a layout of any stage cuts the parameter.
bool IsCut(const SourceTensor& parameter, const Strategy& strategy) {
  return std::any_of(strategy.stages().begin(), strategy.stages().end(),
                     [&](const StrategyStage& stage) {
                       const ParameterLayout* const layout = stage.Find(parameter.name);
                       if (layout == nullptr) return false;
                       const auto grid = MakeGrid(*layout, parameter.full_shape.size(), "");
                       return !grid.ok() || grid->parts() > 1;
                     });
}

std::span<const ByteRange> ContentOf(const StoredArray& info) {
  return info.kind == ArrayKind::kMapTensor ? info.framed : info.content;
}

// Of arrays of fewer bytes all is read ahead when their headers are.
constexpr uint64_t kSmallArray = uint64_t{64} << 10;
// The approximate size of the notes about an array.
constexpr uint64_t kTinyArray = 256;

// Whether to read the file at once when it is indexed. It is if most of its bytes were read with
// the headers, and if it is larger than the notes about it.
bool IsReadAsIndexed(const IndexedFile& file) {
  if (file.table().container().has_one_header || file.arrays().empty()) return false;
  const uint64_t array = file.file_size() / file.arrays().size();
  return kTinyArray <= array && array < kSmallArray;
}

// A turn at a semaphore; the destructor gives it back.
class Turn {
 public:
  explicit Turn(std::counting_semaphore<>& semaphore) : semaphore_(semaphore) {
    semaphore_.acquire();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { semaphore_.release(); }

 private:
  std::counting_semaphore<>& semaphore_;
};

}  // namespace

class ContentsReader::Impl {
 public:
  Impl(const Source& source, const Strategy* strategy, const ParameterChoice& choice)
      : source_(source), strategy_(strategy), choice_(choice) {
    Begin();
  }

  void ReadAsIndexed(uint64_t kept, size_t indexers, const SharedWork& work) {
    // The names of all parameters decide which ones are read.
    if (!choice_.TakesAll() || source_.placement().all_tensors() != nullptr) return;
    // As many index, and wait for the disk, as compute: else all would do the one, then the other.
    const size_t threads = std::max(2 * work.workers, indexers);
    std::counting_semaphore<> turns(static_cast<std::ptrdiff_t>(indexers));
    std::vector<char> is_read(ranks_.size());
    std::atomic<bool> goes_on = true;
    const auto read = [&](size_t i, const std::stop_token& stop) -> Status {
      if (!goes_on) return {};
      const Result<bool> read_now = ReadAsIndexed(ranks_[i], kept / work.workers, turns, stop);
      if (read_now.ok() && *read_now) {
        is_read[i] = 1;
      } else if (!source_.files().HasReadFiles()) {  // else the others are indexed only
        goes_on = false;
      }
      return {};
    };
    static_cast<void>(RunWorkers(threads, ranks_.size(), read, work.stop));
    std::vector<RankFileOfStage> others;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (is_read[i] == 0) others.push_back(ranks_[i]);
    }
    ranks_ = std::move(others);
  }

  Result<CheckpointContents> Read(const std::vector<SourceTensor>& parameters,
                                  const SharedWork& work) {
    if (source_.placement().all_tensors() != nullptr) return ReadListed(parameters, work);
    parameters_ = parameters;
    for (const SourceTensor& parameter : parameters_) {
      // One file has a tensor of the name, another something else: seen as a whole it is not cut.
      if (!parameter.rank || strategy_ == nullptr || !strategy_->Contains(parameter.name)) continue;
      Begin();
      break;
    }
    own_.resize(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      by_name_.emplace(parameters_[i].name, i);
      cut_.push_back(!parameters_[i].rank && IsCut(parameters_[i], *strategy_));
      if (auto found = found_.extract(parameters_[i].name)) own_[i] = std::move(found.mapped());
    }
    found_.clear();
    if (work.progress) work.progress(file_bytes_);
    const DigestUse use = {
        [&](const RankFileOfStage& rank, const StoredArray& info, std::vector<BlockCopy>& copies) {
          return Places(rank, info, copies);
        },
        [&](const RankFileOfStage& rank, const StoredArray& info, size_t number,
            const Digest128& digest) { return Take(rank, info, number, digest); }};
    RESHARD_RETURN_IF_ERROR(DigestRankFiles(source_, ranks_, use, work));
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

  // Call it before the first read.
  void Begin() {
    const std::vector<int64_t> stages = source_.ranks().taken_stages;
    ranks_ = FilesOfStages(source_, stages);
    found_.clear();
    file_bytes_ = 0;
    bytes_ = 0;
    stages_.clear();
    if (strategy_ == nullptr) return;
    for (const int64_t stage : stages) {
      stages_.try_emplace(stage, source_, *strategy_, choice_, stage);
    }
  }

  // Reads a whole file of up to `most` bytes, if all its bytes are cached already. Returns whether
  // it did; if not, the state has not changed.
  Result<bool> ReadAsIndexed(const RankFileOfStage& rank, uint64_t most,
                             std::counting_semaphore<>& turns, const std::stop_token& stop) {
    const auto index_file = [&]() -> Result<TableHandle> {
      const Turn turn(turns);
      return source_.TableOf(rank.stage, rank.local);
    };
    RESHARD_ASSIGN_OR_RETURN(const TableHandle index, index_file());
    // Windows of files that are not mapped take memory of their own.
    if (source_.files().HasReadFiles()) return false;
    if (index->file_size() > most || !IsReadAsIndexed(*index)) return false;
    const std::vector<StoredArray>& arrays = index->arrays();
    struct Found {
      size_t layout = kNoLayout;
      Digest128 digest;
    };
    std::vector<Found> found(arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      RESHARD_ASSIGN_OR_RETURN(const std::optional<size_t> layout, LayoutThatCuts(rank, arrays[i]));
      if (!layout) return false;
      found[i].layout = *layout;
    }
    const DigestUse use = {
        [&](const RankFileOfStage&, const StoredArray& info,
            std::vector<BlockCopy>& copies) -> Result<std::optional<size_t>> {
          const auto i = static_cast<size_t>(&info - arrays.data());
          if (found[i].layout == kNoLayout) {
            copies = LayOut(rank.file, ContentOf(info));
          } else {
            RESHARD_RETURN_IF_ERROR(
                stages_.at(rank.stage).AddPlaces(found[i].layout, rank, info, copies));
          }
          return std::optional(i);
        },
        [&](const RankFileOfStage&, const StoredArray&, size_t i,
            const Digest128& digest) -> Status {
          found[i].digest = digest;
          return {};
        }};
    RESHARD_RETURN_IF_ERROR(
        DigestRankFiles(source_, {&rank, 1}, use, {.workers = 1, .stop = stop}));
    for (size_t i = 0; i < arrays.size(); ++i) {
      const uint64_t bytes = CountBytes(arrays[i]);
      if (found[i].layout != kNoLayout) {
        stages_.at(rank.stage).Add(found[i].layout, rank, arrays[i], found[i].digest);
        continue;
      }
      const std::scoped_lock lock(mutex_);
      AddOwn(rank, arrays[i], bytes, found[i].digest, found_[std::string(arrays[i].name)]);
    }
    file_bytes_ += index->file_size();
    return true;
  }

  // Returns the place of the layout that cuts the parameter, among the layouts of its stage.
  // Returns kNoLayout if no layout of any stage does; no value if this shard cannot tell.
  Result<std::optional<size_t>> LayoutThatCuts(const RankFileOfStage& rank,
                                               const StoredArray& info) {
    if (strategy_ == nullptr) return std::optional(kNoLayout);
    StageShards& stage = stages_.at(rank.stage);
    const std::optional<size_t> layout = stage.Find(info.name);
    if (layout && info.kind == ArrayKind::kTensor) {
      RESHARD_ASSIGN_OR_RETURN(const bool is_cut, stage.IsCut(*layout, rank, info));
      if (is_cut) return layout;
      if (strategy_->stages().size() == 1) return std::optional(kNoLayout);
    }
    if (strategy_->Contains(info.name)) return std::optional<size_t>();
    return std::optional(kNoLayout);
  }

  // Reads tensors whose parts are listed, because their names differ from those in the files.
  Result<CheckpointContents> ReadListed(const std::vector<SourceTensor>& tensors,
                                        const SharedWork& work) const {
    CheckpointContents contents;
    RESHARD_ASSIGN_OR_RETURN(const std::vector<Digest128> digests,
                             DigestTensors(source_, tensors, work));
    for (size_t i = 0; i < tensors.size(); ++i) {
      const SourceTensor& tensor = tensors[i];
      contents.bytes += tensor.Bytes();
      contents.values.push_back({ValueOf(tensor, digests[i])});
    }
    return contents;
  }

  // When all is read.
  Result<CheckpointContents> Finish() {
    CheckpointContents contents;
    contents.bytes = bytes_;
    contents.values.resize(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      std::vector<HeldValue>& values = contents.values[i];
      if (!cut_[i]) {
        values = OwnValues(i, contents.replicas);
        continue;
      }
      RESHARD_ASSIGN_OR_RETURN(HeldValue value, CutValue(parameters_[i]));
      values.push_back(std::move(value));
    }
    for (const auto& [number, stage] : stages_) {
      const auto original = [&, number = number](std::string_view name) {
        return OriginalOf(name, number, contents);
      };
      RESHARD_RETURN_IF_ERROR(stage.Report({IsAccumulatedGradient, original}, contents.replicas,
                                           contents.own_gradients));
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
    const uint64_t bytes = CountBytes(info);
    if (number >= parameters_.size()) {
      stages_.at(rank.stage).Add(number - parameters_.size(), rank, info, digest);
      return {};
    }
    const std::scoped_lock lock(mutex_);
    AddOwn(rank, info, bytes, digest, own_[number]);
    return {};
  }

  // Counts the bytes of an array that was read; returns them.
  uint64_t CountBytes(const StoredArray& info) {
    uint64_t bytes = 0;
    for (const ByteRange& range : ContentOf(info)) bytes += range.length;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return bytes;
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
      return MismatchError(fmt::format(
          "parameter {}: ranks hold shards of different dtypes or shapes; are these ranks of one "
          "checkpoint?",
          Quote(tensor.name)));
    }
    return ValueOf(tensor, *sum);
  }

  static HeldValue ValueOf(const SourceTensor& tensor, const Digest128& digest) {
    return {tensor.kind, tensor.dtype, tensor.full_shape, tensor.Bytes(), digest, {}};
  }

  static constexpr size_t kNoLayout = SIZE_MAX;

  const Source& source_;
  const Strategy* const strategy_;  // null: none
  const ParameterChoice choice_;
  std::vector<RankFileOfStage> ranks_;  // with files that are still to be read
  std::span<const SourceTensor> parameters_;
  std::unordered_map<std::string_view, size_t> by_name_;  // places in parameters_
  std::vector<bool> cut_;                                 // by a layout, as parameters_
  std::map<int64_t, StageShards> stages_;                 // none without a strategy
  std::atomic<uint64_t> bytes_ = 0;                       // that were read
  std::atomic<uint64_t> file_bytes_ = 0;                  // of files that were read as indexed
  std::mutex mutex_;
  std::unordered_map<std::string, OwnByValue> found_;  // by name, before parameters are known
  std::vector<OwnByValue> own_;                        // as parameters_; both guarded by mutex_
};

ContentsReader::ContentsReader(const Source& source, const Strategy* strategy,
                               const ParameterChoice& choice)
    : impl_(std::make_unique<Impl>(source, strategy, choice)) {}

ContentsReader::~ContentsReader() = default;

void ContentsReader::ReadAsIndexed(uint64_t kept, size_t indexers, const SharedWork& work) {
  impl_->ReadAsIndexed(kept, indexers, work);
}

Result<CheckpointContents> ContentsReader::Read(const std::vector<SourceTensor>& parameters,
                                                const SharedWork& work) {
  return impl_->Read(parameters, work);
}

Result<std::vector<SourceTensor>> ListTensors(const Source& source, const ConversionRule& rule,
                                              const SharedWork& work, PlanFindings& findings) {
  const MindSporeTarget target(source, rule, "", UnmatchedPolicy::kCopy);
  target.IndexSources(0, Indexers(work.workers), work.stop);
  RESHARD_ASSIGN_OR_RETURN(const MindSporeTarget::Selection selection, target.Select(0, findings));
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

Result<std::vector<Digest128>> DigestTensors(const Source& source,
                                             const std::vector<SourceTensor>& tensors,
                                             const SharedWork& work) {
  std::vector<uint64_t> sizes;
  sizes.reserve(tensors.size());
  for (const SourceTensor& tensor : tensors) sizes.push_back(tensor.Bytes());
  std::vector<Digest128> digests(tensors.size());
  std::mutex mutex;  // guards digests
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
    digests[index] ^= sum;
    return {};
  };
  RESHARD_RETURN_IF_ERROR(ForEachPiece(sizes, kPieceBytes, work, add));
  return digests;
}

bool HeldValue::Less::operator()(const HeldValue& a, const HeldValue& b) const {
  const auto key = [](const HeldValue& value) {
    return std::tie(value.digest.high, value.digest.low, value.bytes, value.kind, value.dtype,
                    value.shape);
  };
  return key(a) < key(b);
}

}  // namespace reshard
