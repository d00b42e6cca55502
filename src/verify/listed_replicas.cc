#include "src/verify/listed_replicas.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status_macros.h"
#include "src/os/threads.h"
#include "src/plan/training_counter.h"
#include "src/source/part_list.h"
#include "src/tensor/block_copy.h"
#include "src/tensor/byte_box.h"
#include "src/verify/copied_bytes.h"

namespace reshard {
namespace {

constexpr size_t kMostListed = 20;  // as ReplicaReport has them
constexpr uint64_t kSampledBytes = uint64_t{64} << 10;

using Replicas = std::span<const PartList::Part>;

// The parts of a tensor that several files have.
std::vector<Replicas> RepeatedParts(const PartList::Tensor& tensor) {
  std::vector<Replicas> repeated;
  for (size_t i = 0; i < tensor.parts.size();) {
    const Replicas replicas = PartList::ReplicasAt(tensor, i);
    if (replicas.size() > 1 && !replicas.front().box().empty()) repeated.push_back(replicas);
    i += replicas.size();
  }
  return repeated;
}

uint64_t PartBytes(const PartList::Tensor& tensor, const PartList::Part& part) {
  return tensor.dtype ? TensorBytes(part.shape(), *tensor.dtype).value_or(0) : 0;
}

uint64_t PartBytes(const PartList::Tensor& tensor, const std::vector<Replicas>& parts) {
  uint64_t bytes = 0;
  for (const Replicas& replicas : parts) {
    bytes += replicas.size() * PartBytes(tensor, replicas.front());
  }
  return bytes;
}

// An array that is a replica, and the table that has it.
struct Held {
  int64_t rank = 0;
  TableHandle table;
  const StoredArray* array = nullptr;
};

// Compares the replicas of one tensor. One thread.
class TensorComparison {
 public:
  // At most the first `most_bytes` of each part are compared.
  TensorComparison(const Source& source, const SharedWork& work, std::stop_token stop,
                   uint64_t most_bytes = std::numeric_limits<uint64_t>::max())
      : source_(source), work_(work), stop_(std::move(stop)), most_bytes_(most_bytes) {}

  Status Compare(const PartList::Tensor& tensor, const std::vector<Replicas>& parts) {
    difference_.parameter = tensor.name;
    for (const Replicas& replicas : parts) RESHARD_RETURN_IF_ERROR(ComparePart(tensor, replicas));
    return {};
  }

  void AddTo(ReplicaReport& report) {
    if (shards_ == 0) return;
    ++report.compared;
    report.shards += shards_;
    report.bytes += bytes_;
    if (difference_.pair_count == 0) return;
    if (IsAccumulatedGradient(difference_.parameter)) {
      report.own_values.push_back(difference_.parameter);
      return;
    }
    ++report.differing;
    if (report.differences.size() < kMostListed) {
      report.differences.push_back(std::move(difference_));
    }
  }

 private:
  Status ComparePart(const PartList::Tensor& tensor, const Replicas& replicas) {
    const uint64_t bytes = std::min(PartBytes(tensor, replicas.front()), most_bytes_);
    std::optional<Held> reference;
    uint64_t compared = 0;
    for (const PartList::Part& part : replicas) {
      RESHARD_ASSIGN_OR_RETURN(std::optional<Held> held, Find(part));
      if (held && !reference) {
        reference = std::move(held);
      } else if (held) {
        RESHARD_RETURN_IF_ERROR(ComparePair(tensor, part, *reference, *held));
        ++compared;
      }
      if (work_.progress) work_.progress(bytes);
    }
    if (compared == 0) return {};
    shards_ += compared + 1;
    bytes_ += (compared + 1) * bytes;
    return {};
  }

  Result<std::optional<Held>> Find(const PartList::Part& part) const {
    const ArrayPlace place = part.place();
    RESHARD_ASSIGN_OR_RETURN(TableHandle table,
                             source_.TableOf(0, place.rank - source_.RankOf(0, 0)));
    const StoredArray* const array = table ? table->Find(place.array) : nullptr;
    if (array == nullptr) return std::optional<Held>();
    return std::optional(Held{place.rank, std::move(table), array});
  }

  Status ComparePair(const PartList::Tensor& tensor, const PartList::Part& part,
                     const Held& reference, const Held& held) {
    const auto is_listed = [&](const StoredArray& array) {
      return array.kind == ArrayKind::kTensor && array.dtype == tensor.dtype &&
             array.shape == part.shape();
    };
    if (!is_listed(*reference.array) || !is_listed(*held.array)) {
      Add({held.rank, reference.rank, true, 0});
      return {};
    }
    const uint64_t bytes = std::min(PartBytes(tensor, part), most_bytes_);
    RESHARD_ASSIGN_OR_RETURN(
        const auto byte,
        FirstDifference(source_.files(), LayOut(reference.table->file(), reference.array->content),
                        LayOut(held.table->file(), held.array->content), bytes, stop_));
    if (byte) Add({held.rank, reference.rank, false, byte->target});
    return {};
  }

  void Add(const ReplicaReport::Pair& pair) {
    ++difference_.pair_count;
    if (difference_.pairs.size() < kMostListed) difference_.pairs.push_back(pair);
  }

  const Source& source_;
  const SharedWork& work_;
  const std::stop_token stop_;
  const uint64_t most_bytes_;
  ReplicaReport::Difference difference_;
  uint64_t shards_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

uint64_t ListedReplicaBytes(const Source& source) {
  const PartList* const all = source.placement().all_tensors();
  uint64_t bytes = 0;
  if (all == nullptr) return bytes;
  for (const PartList::Tensor& tensor : all->tensors()) {
    bytes += PartBytes(tensor, RepeatedParts(tensor));
  }
  return bytes;
}

Result<ReplicaReport> CompareListedReplicas(const Source& source, const ParameterChoice& choice,
                                            const SharedWork& work) {
  ReplicaReport report;
  const PartList* const all = source.placement().all_tensors();
  if (all == nullptr) return report;
  std::vector<std::optional<TensorComparison>> done(all->tensors().size());
  const auto compare = [&](size_t i, const std::stop_token& stop) -> Status {
    const PartList::Tensor& tensor = all->tensors()[i];
    const std::vector<Replicas> parts = RepeatedParts(tensor);
    if (parts.empty()) return {};
    if (!choice.Takes(tensor.name)) {
      if (work.progress) work.progress(PartBytes(tensor, parts));
      return {};
    }
    return done[i].emplace(source, work, stop).Compare(tensor, parts);
  };
  RESHARD_RETURN_IF_ERROR(RunWorkers(work.workers, done.size(), compare, work.stop));
  for (std::optional<TensorComparison>& comparison : done) {
    if (comparison) comparison->AddTo(report);
  }
  return report;
}

Result<ReplicaReport> SampleListedReplicas(const Source& source, const ParameterChoice& choice,
                                           size_t most, const std::stop_token& stop) {
  ReplicaReport report;
  const PartList* const all = source.placement().all_tensors();
  if (all == nullptr) return report;
  const auto parts_of = [&](const PartList::Tensor& tensor) {
    return choice.Takes(tensor.name) ? RepeatedParts(tensor) : std::vector<Replicas>();
  };
  size_t replicas = 0;
  for (const PartList::Tensor& tensor : all->tensors()) {
    for (const Replicas& part : parts_of(tensor)) replicas += part.size();
  }
  const size_t step = most == 0 ? replicas + 1 : replicas / most + 1;
  const SharedWork work{1, stop, {}};
  size_t seen = 0;
  size_t read = 0;
  for (const PartList::Tensor& tensor : all->tensors()) {
    std::vector<Replicas> sampled;
    for (const Replicas& part : parts_of(tensor)) {
      if (seen++ % step == 0 && read + part.size() <= most) {
        read += part.size();
        sampled.push_back(part);
      }
    }
    if (sampled.empty()) continue;
    TensorComparison comparison(source, work, stop, kSampledBytes);
    RESHARD_RETURN_IF_ERROR(comparison.Compare(tensor, sampled));
    comparison.AddTo(report);
  }
  return report;
}

}  // namespace reshard
