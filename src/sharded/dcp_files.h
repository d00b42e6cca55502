// Checkpoints of PyTorch's distributed checkpoint, DCP, Megatron's torch_dist included: files with
// chunks of tensors, and metadata with the place of each chunk (format/dcp/SPEC.md).
#ifndef RESHARD_SRC_SHARDED_DCP_FILES_H_
#define RESHARD_SRC_SHARDED_DCP_FILES_H_

#include "reshard/status.h"
#include "src/sharded/sharded_folder.h"
#include "src/source/found_source.h"

namespace reshard {

// Reads the metadata of `folder`, from .metadata or from a file of each rank. Errors: as
// FindShardedSource. Any thread.
Status ReadDcp(const ShardedFolder& folder, const SourceRequest& request, FoundSource& found);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_DCP_FILES_H_
