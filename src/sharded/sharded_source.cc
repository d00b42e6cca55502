#include "src/sharded/sharded_source.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/sharded/mindformers_files.h"
#include "src/sharded/shard_files.h"
#include "src/sharded/sharded_folder.h"
#include "src/sharded/torch_rank_files.h"

namespace reshard {

Result<std::optional<FoundSource>> FindShardedSource(const SourceRequest& request) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<ShardedFolder> folder,
                           FindShardedFolder(request.path));
  if (!folder) return std::optional<FoundSource>();
  const auto read = folder->family == ShardedFamily::kMindFormers  ? ReadMindFormers
                    : folder->family == ShardedFamily::kTorchRanks ? ReadTorchRanks
                                                                   : ReadShards;
  RESHARD_ASSIGN_OR_RETURN(FoundSource found, read(*folder, request));
  return std::optional(std::move(found));
}

}  // namespace reshard
