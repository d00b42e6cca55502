// The files that ranks of FSDP save with torch.save, each its own: model_world_size_N_rank_R.pt.
// DTensors in them say their full shape and how the ranks cut it. Other tensors are replicas.
#ifndef RESHARD_SRC_SHARDED_TORCH_RANK_FILES_H_
#define RESHARD_SRC_SHARDED_TORCH_RANK_FILES_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "reshard/status.h"
#include "src/sharded/sharded_folder.h"
#include "src/source/found_source.h"

namespace reshard {

struct TorchRankName {
  int64_t world_size = 0;  // at least 1
  int64_t rank = 0;        // less than that
};

// Returns no value for a name that is not model_world_size_N_rank_R.pt.
std::optional<TorchRankName> ParseTorchRankName(std::string_view name);

// Reads the tables of all files of `folder`. Errors: as FindShardedSource. Any thread.
Result<FoundSource> ReadTorchRanks(const ShardedFolder& folder, const SourceRequest& request);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_TORCH_RANK_FILES_H_
