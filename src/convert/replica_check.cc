#include "src/convert/replica_check.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "src/base/quote.h"

namespace reshard {
namespace {

std::string Words(const ReplicaDifference& difference) {
  FirstFew pairs;
  for (const ReplicaPair& pair : difference.pairs) {
    pairs.Add(pair.other_type
                  ? fmt::format("rank {} has another dtype or shape than rank {}", pair.rank,
                                pair.reference)
                  : fmt::format("rank {} differs from rank {} from byte {} of the shard on",
                                pair.rank, pair.reference, pair.offset));
  }
  pairs.AddUnnamed(difference.pair_count - difference.pairs.size());
  return fmt::format("{}: {}", Quote(difference.parameter), pairs.Joined());
}

}  // namespace

std::vector<int64_t> StagesOf(const ConversionRule& rule, std::span<const int64_t> target_ranks) {
  std::set<int64_t> target_stages;
  for (const int64_t rank : target_ranks) {
    if (rank >= 0 && rank < rule.target_ranks()) target_stages.insert(rule.TargetStage(rank));
  }
  std::set<int64_t> stages;
  for (const int64_t target_stage : target_stages) {
    for (const int64_t stage : rule.NeededSourceStages(target_stage)) stages.insert(stage);
  }
  return {stages.begin(), stages.end()};
}

uint64_t ReplicaBytes(const OpenedSource& source, std::span<const int64_t> stages) {
  const ConversionRule& rule = source.rule();
  if (rule.source() == nullptr) return 0;
  uint64_t bytes = 0;
  for (const OpenedSource::File& file : source.chosen()) {
    for (const int64_t stage : stages) {
      const int64_t first = rule.SourceRank(stage, 0);
      if (file.rank >= first && file.rank < first + rule.source_devices()) {
        bytes += file.identity.size;
      }
    }
  }
  return bytes;
}

Status CheckNoneDiffer(const ReplicaReport& replicas) {
  if (replicas.differing == 0) return {};
  FirstFew list;
  for (const ReplicaDifference& difference : replicas.differences) list.Add(Words(difference));
  list.AddUnnamed(replicas.differing - replicas.differences.size());
  return MismatchError(fmt::format(
      "{} of {} parameters differ between source ranks that ought to hold the same; most likely "
      "the source strategy is not the one that this checkpoint was saved with, or the files of "
      "some ranks are damaged or another checkpoint's. Take away the folders of ranks that are "
      "not right (their replicas stand in for them), or pass --check-replicas=none, which takes "
      "the shards of any:{}",
      replicas.differing, replicas.compared, list.Lines()));
}

}  // namespace reshard
