#include "src/verify/shard_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/os/storage_kind.h"
#include "src/os/threads.h"
#include "src/verify/stage_sample.h"
#include "src/verify/value_sums.h"

namespace reshard {
namespace {

// Files that only the sample opens are read header by header, and their windows are not kept. Bytes
// that a server sends ahead take room.
constexpr uint64_t kOtherWindows = uint64_t{1} << 20;
constexpr uint64_t kRemoteWindows = uint64_t{4} << 20;

// An agreement between ranks that should hold different parts is remarkable from this many bytes
// on.
constexpr uint64_t kRemarkable = 1024;

// The offset of the first byte that differs, if one does.
std::optional<uint64_t> FirstDifferent(const SampledParameter& parameter, const SampledShard& a,
                                       const SampledShard& b) {
  for (size_t i = 0; i < parameter.places.size(); ++i) {
    const auto& [x, y] = std::pair<const std::string&, const std::string&>(a.bytes[i], b.bytes[i]);
    const size_t same = static_cast<size_t>(
        std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
    if (same < x.size() || x.size() != y.size()) return parameter.places[i].offset + same;
  }
  return std::nullopt;
}

// Compares each rank's part of each parameter with the first rank's that ought to hold it, too.
void CompareReplicaSamples(const StageSample& stage, ShardSample& sample) {
  for (size_t p = 0; p < stage.parameters().size(); ++p) {
    const SampledParameter& parameter = stage.parameters()[p];
    if (parameter.as != SampledAs::kPlaced) continue;
    const bool is_matrix = parameter.info->shape.size() >= 2;
    std::map<std::vector<int64_t>, const SampledRank*> first;  // by part
    for (const SampledRank& rank : stage.ranks()) {
      if (!rank.read || !rank.shards[p].held) continue;
      const auto [place, is_new] = first.try_emplace(parameter.grid->PartsOf(rank.local), &rank);
      if (is_new) continue;
      ++sample.counts.comparisons;
      const SampledShard& reference = place->second->shards[p];
      SampledDifference difference{std::string(parameter.info->name),
                                   stage.RankOf(rank),
                                   stage.RankOf(*place->second),
                                   parameter.cut,
                                   is_matrix,
                                   false,
                                   0};
      if (rank.shards[p].other_type != reference.other_type) {
        difference.other_type = true;
      } else if (const auto at = FirstDifferent(parameter, reference, rank.shards[p])) {
        difference.offset = *at;
      } else {
        if (is_matrix && !reference.constant && !reference.other_type) ++sample.counts.confirming;
        continue;
      }
      sample.differences.push_back(std::move(difference));
    }
  }
}

// Finds unmatched tensors that differ between ranks.
void FindUnmatchedThatDiffer(const StageSample& stage, ShardSample& sample) {
  for (size_t p = 0; p < stage.parameters().size(); ++p) {
    const SampledParameter& parameter = stage.parameters()[p];
    if (parameter.as != SampledAs::kUnmatched) continue;
    const SampledShard* first = nullptr;
    for (const SampledRank& rank : stage.ranks()) {
      if (!rank.read || !rank.shards[p].held) continue;
      const SampledShard& shard = rank.shards[p];
      if (first == nullptr) first = &shard;
      if (shard.other_type != first->other_type ||
          (!shard.other_type && FirstDifferent(parameter, *first, shard))) {
        sample.unmatched_differ.insert(std::string(parameter.info->name));
        break;
      }
    }
  }
}

std::string ValueInWords(DType dtype, const std::string& bytes) {
  const ValueSums sums = SumValues(dtype, std::as_bytes(std::span(bytes)));
  if (sums.finite() == 0) return sums.nans > 0 ? "NaN" : "infinite";
  return std::visit([](auto value) { return fmt::format("{}", value); }, sums.least);
}

// Adds each counter's values in the ranks of a stage.
void AddCounters(const StageSample& stage, ShardSample& sample) {
  for (size_t p = 0; p < stage.parameters().size(); ++p) {
    const SampledParameter& parameter = stage.parameters()[p];
    if (parameter.as != SampledAs::kCounter || !HasSums(parameter.info->dtype)) continue;
    std::vector<CounterValue>& values = sample.counters[std::string(parameter.info->name)];
    for (const SampledRank& rank : stage.ranks()) {
      if (!rank.read || !rank.shards[p].held || rank.shards[p].other_type) continue;
      std::string value = ValueInWords(parameter.info->dtype, rank.shards[p].bytes.front());
      auto known = std::find_if(values.begin(), values.end(),
                                [&](const CounterValue& other) { return other.value == value; });
      if (known == values.end()) known = values.insert(known, {std::move(value), {}});
      known->ranks.push_back(stage.RankOf(rank));
    }
  }
}

// Finds ranks that hold the same bytes although they ought to hold different parts.
void FindEqualRanks(const StageSample& stage, ShardSample& sample) {
  std::vector<size_t> cut;  // places in parameters()
  for (size_t p = 0; p < stage.parameters().size(); ++p) {
    if (stage.parameters()[p].cut) cut.push_back(p);
  }
  // By the values of all cut parameters that are not constant.
  std::map<std::vector<const std::vector<std::string>*>, const SampledRank*,
           bool (*)(const std::vector<const std::vector<std::string>*>&,
                    const std::vector<const std::vector<std::string>*>&)>
      first([](const auto& a, const auto& b) {
        return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                            [](const auto* x, const auto* y) { return *x < *y; });
      });
  const std::vector<std::string> nothing;
  for (const SampledRank& rank : stage.ranks()) {
    if (!rank.read) continue;
    std::vector<const std::vector<std::string>*> held;
    for (const size_t p : cut) {
      const SampledShard& shard = rank.shards[p];
      held.push_back(shard.held && !shard.constant && !shard.other_type ? &shard.bytes : &nothing);
    }
    const auto [place, is_new] = first.try_emplace(held, &rank);
    if (is_new) continue;
    const SampledRank& other = *place->second;
    uint64_t bytes = 0;
    std::string_view name;
    for (size_t i = 0; i < cut.size(); ++i) {
      const SampledParameter& parameter = stage.parameters()[cut[i]];
      if (parameter.grid->PartsOf(rank.local) == parameter.grid->PartsOf(other.local)) continue;
      for (const std::string& part : *held[i]) bytes += part.size();
      if (name.empty() && !held[i]->empty()) name = parameter.info->name;
    }
    if (bytes < kRemarkable) continue;
    sample.equal.push_back({stage.RankOf(rank), stage.RankOf(other), std::string(name)});
  }
}

}  // namespace

SampleLimits SampleLimitsFor(const std::string& path) {
  const SampleLimits most;
  const auto file = Storage::Of(path).Open(path);
  if (file.ok() && (*file)->HasCheapReads()) return most;
  return {most.reads / 4, most.files / 4};
}

Result<ShardSample> SampleShards(const Source& source, const Strategy* strategy,
                                 const SampledNames& names, std::span<const int64_t> stages,
                                 const SampleLimits& limits, const SharedWork& work) {
  ShardSample sample;
  if (strategy == nullptr) return sample;
  const auto start = std::chrono::steady_clock::now();
  const size_t workers = std::max<size_t>(work.workers, 1);
  const auto& placed = source.ranks().files;
  const size_t askers =
      placed.empty() ? workers : Askers(source.PathOf(placed.begin()->second), workers);
  SourceFiles others({.max_open = askers,
                      .window_budget = askers > workers ? kRemoteWindows : kOtherWindows,
                      .stop = work.stop,
                      .key = source.files().key()});
  SampleBudget budget{.reads = static_cast<int64_t>(limits.reads),
                      .files = static_cast<int64_t>(limits.files)};
  for (size_t i = 0; i < stages.size(); ++i) {
    if (work.stop.stop_requested()) return CancelledError("stopped while sampling replicas");
    StageSample stage(others, source, *strategy, names, stages[i], budget);
    const size_t left = stages.size() - i;
    RESHARD_RETURN_IF_ERROR(
        stage.Choose(std::max<int64_t>(budget.reads, 0) / static_cast<int64_t>(left),
                     std::max<int64_t>(budget.files, 0) / static_cast<int64_t>(left)));
    RESHARD_RETURN_IF_ERROR(RunWorkers(
        askers, stage.ranks().size(),
        [&](size_t task, const std::stop_token& /*stop*/) { return stage.Read(task); }, work.stop));
    sample.any_cut = sample.any_cut || stage.any_cut();
    for (const SampledRank& rank : stage.ranks()) {
      if (rank.read) ++sample.counts.files;
      if (rank.read && !rank.known) ++sample.counts.files_opened;
      if (!rank.unread.empty()) sample.unread.push_back(rank.unread);
    }
    sample.any_matrix_has_replicas |= stage.any_matrix_has_replicas();
    for (const SampledParameter& parameter : stage.parameters()) {
      if (parameter.as == SampledAs::kPlaced) ++sample.counts.parameters;
    }
    CompareReplicaSamples(stage, sample);
    FindUnmatchedThatDiffer(stage, sample);
    AddCounters(stage, sample);
    FindEqualRanks(stage, sample);
  }
  std::erase_if(sample.counters, [](const auto& counter) { return counter.second.size() < 2; });
  sample.counts.reads = limits.reads + static_cast<size_t>(budget.granted - budget.reads.load());
  sample.counts.bytes = budget.bytes;
  sample.counts.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return sample;
}

}  // namespace reshard
