// Which ranks hold which box of a tensor, as a grid, for `inspect --param`. Pure
// functions.
#ifndef RESHARD_TOOLS_CLI_SHARD_REPORT_H_
#define RESHARD_TOOLS_CLI_SHARD_REPORT_H_

#include <string>
#include <vector>

#include "reshard/checkpoint.h"

namespace reshard {

// A line about the tensor, and a grid. The last dimension that is cut goes from left to right, the
// others from top to bottom. At most 80 columns and 16 rows of cells: if there are more parts,
// neighbours share a cell. `shards` are the tensor's, in row-major order; their
// boxes count elements.
std::string ShardsAsText(const ShardedCheckpoint::Tensor& tensor,
                         const std::vector<ShardedCheckpoint::Shard>& shards);

// Returns "4 x 1 parts, each on 2 ranks", "not cut, on 8 ranks", "in no layout".
std::string CutText(const ShardedCheckpoint::Tensor& tensor,
                    const std::vector<ShardedCheckpoint::Shard>& shards);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_SHARD_REPORT_H_
