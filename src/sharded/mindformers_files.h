// Checkpoints of MindFormers 2.0: safetensors files with slices of tensors, and a metadata.json
// that says which file has which slice (format/mindformers_metadata/SPEC.md). A single device
// writes whole tensors, without a metadata.json.
#ifndef RESHARD_SRC_SHARDED_MINDFORMERS_FILES_H_
#define RESHARD_SRC_SHARDED_MINDFORMERS_FILES_H_

#include "reshard/status.h"
#include "src/sharded/sharded_folder.h"
#include "src/source/found_source.h"

namespace reshard {

// Reads the metadata of `folder`; without one, the headers of its files. Errors: as
// FindShardedSource. Any thread.
Status ReadMindFormers(const ShardedFolder& folder, const SourceRequest& request,
                       FoundSource& found);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_MINDFORMERS_FILES_H_
