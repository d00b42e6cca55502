// The files that ranks of FSDP save with torch.save, each its own: model_world_size_N_rank_R.pt,
// and accelerate's pytorch_model_fsdp_rankR.bin. DTensors in them say their full shape and how the
// ranks cut it. Other tensors are replicas.
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
  std::string_view set;               // equal in all names of a save; of the parsed name
  std::optional<int64_t> world_size;  // at least 1; accelerate does not state it
  int64_t rank = 0;                   // less than that
};

// Returns no value for a name that is not model_world_size_N_rank_R.pt,
// pytorch_model_fsdp_rankR.bin or pytorch_model_fsdp_M_rankR.bin, of model M.
std::optional<TorchRankName> ParseTorchRankName(std::string_view name);

// Reads the tables of all files of `folder`. Errors: as FindShardedSource. Any thread.
Status ReadTorchRanks(const ShardedFolder& folder, const SourceRequest& request,
                      FoundSource& found);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_TORCH_RANK_FILES_H_
