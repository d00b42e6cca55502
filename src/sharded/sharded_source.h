// The families whose files hold parts of tensors and say which, as sources.
#ifndef RESHARD_SRC_SHARDED_SHARDED_SOURCE_H_
#define RESHARD_SRC_SHARDED_SHARDED_SOURCE_H_

#include <optional>

#include "reshard/status.h"
#include "src/source/found_source.h"

namespace reshard {

// A SourceFinder. Reads the headers or the metadata of all files, and proves that each wanted
// tensor is whole.
// Errors: as FindShardedFolder and SourceFiles, and
//   kCorrupt: a file breaks its format, or states something impossible; names file and tensor
//   kMismatch: files contradict each other, or parts are missing
//   kUnsupported: tensors that cannot be cut, such as those of packed elements
// Any thread.
Result<std::optional<FoundSource>> FindShardedSource(const SourceRequest& request);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_SHARDED_SOURCE_H_
