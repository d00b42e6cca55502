// The shards that PyTorch's HuggingFaceStorageWriter saves: each is a safetensors file, whose
// metadata DCP_SHARDING_INFO says where its arrays begin in their tensors.
//
// The full shape of a tensor is the end of its parts, in each dimension, as for PyTorch. If files
// have the metadata `reshard`, the full shapes are stated there.
#ifndef RESHARD_SRC_SHARDED_SHARD_FILES_H_
#define RESHARD_SRC_SHARDED_SHARD_FILES_H_

#include "reshard/status.h"
#include "src/sharded/sharded_folder.h"
#include "src/source/found_source.h"

namespace reshard {

// Reads the headers of all shards of `folder`. Errors: as FindShardedSource. Any thread.
Status ReadShards(const ShardedFolder& folder, const SourceRequest& request, FoundSource& found);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_SHARD_FILES_H_
