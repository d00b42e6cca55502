#include "src/verify/replica_comparison.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status_macros.h"
#include "src/verify/rank_file_digests.h"
#include "src/verify/stage_shards.h"

namespace reshard {

Result<ReplicaReport> CompareReplicas(SourceFiles& files, const SourceShards& shards,
                                      const ParameterChoice& choice,
                                      std::span<const int64_t> stages, const SharedWork& work) {
  ReplicaReport report;
  if (shards.rule().source() == nullptr) return report;
  std::map<int64_t, StageShards> by_stage;
  for (const int64_t stage : stages) by_stage.try_emplace(stage, files, shards, choice, stage);
  using Places = std::optional<std::vector<BlockCopy>>;
  const auto places = [&](const RankFileOfStage& rank,
                          const StoredArray& parameter) -> Result<Places> {
    StageShards& stage = by_stage.at(rank.stage);
    const std::optional<size_t> layout = stage.Find(parameter.name);
    if (!layout || parameter.kind != ArrayKind::kTensor) return Places();
    RESHARD_ASSIGN_OR_RETURN(const bool has_replicas, stage.HasReplicas(*layout, rank, parameter));
    if (!has_replicas) return Places();
    RESHARD_ASSIGN_OR_RETURN(Places found, stage.PlacesOf(*layout, rank, parameter));
    return found;
  };
  const auto take = [&](const RankFileOfStage& rank, const StoredArray& parameter,
                        const Digest128& digest) {
    StageShards& stage = by_stage.at(rank.stage);
    return stage.Add(*stage.Find(parameter.name), rank, parameter, digest);
  };
  RESHARD_RETURN_IF_ERROR(
      DigestRankFiles(files, shards, FilesOfStages(shards, stages), {places, take}, work));
  std::vector<std::string> noted;
  for (const auto& [number, stage] : by_stage) {
    RESHARD_RETURN_IF_ERROR(stage.Report({}, report, noted));
  }
  return report;
}

}  // namespace reshard
