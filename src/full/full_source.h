// The family of folders of full tensors, and of lone safetensors files, as sources.
#ifndef RESHARD_SRC_FULL_FULL_SOURCE_H_
#define RESHARD_SRC_FULL_FULL_SOURCE_H_

#include <optional>

#include "reshard/status.h"
#include "src/source/found_source.h"

namespace reshard {

// A SourceFinder. Files of the index without a wanted tensor may be missing.
// Errors: as FindFullFolder and ParseWeightMap; kIo
//   kCorrupt: a folder's index is another kind of file
//   kMismatch: files are missing
// Any thread.
Result<std::optional<FoundSource>> FindFullSource(const SourceRequest& request);

}  // namespace reshard

#endif  // RESHARD_SRC_FULL_FULL_SOURCE_H_
