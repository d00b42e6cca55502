// The family of folders of whole tensors, and of lone safetensors files, as sources.
#ifndef RESHARD_SRC_FULL_FULL_SOURCE_H_
#define RESHARD_SRC_FULL_FULL_SOURCE_H_

#include <optional>

#include "reshard/status.h"
#include "src/source/found_source.h"

namespace reshard {

// A SourceFinder. Of files that the index names, those without a tensor that is wanted may be
// missing. Errors: those of FindFullFolder and ParseWeightMap; kCorrupt where a folder's index is
// something else; kMismatch where files are missing; kIo. Any thread.
Result<std::optional<FoundSource>> FindFullSource(const SourceRequest& request);

}  // namespace reshard

#endif  // RESHARD_SRC_FULL_FULL_SOURCE_H_
