// The files of a target folder, found by their paths without following symbolic links. No state;
// any thread.
#ifndef RESHARD_SRC_EXEC_TARGET_PLACE_H_
#define RESHARD_SRC_EXEC_TARGET_PLACE_H_

#include <string>
#include <vector>

#include "format/manifest/manifest_codec.h"
#include "reshard/status.h"
#include "src/os/output_place.h"

namespace reshard {

// Returns whether `file` lies below `root` as a regular file of its size. Errors: as FindPlace.
Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file);

// Makes the entries of `root` and of all folders on the way to `files` durable; of those folders
// that exist. Errors: as FindPlace.
Status SyncFolders(const OutputDirectory& root, const std::vector<ManifestFile>& files);

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_TARGET_PLACE_H_
