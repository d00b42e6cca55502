// Places in a target folder, given by relative paths: each component is opened by itself, and no
// symbolic link is followed. No state; any thread.
#ifndef RESHARD_SRC_EXEC_TARGET_PLACE_H_
#define RESHARD_SRC_EXEC_TARGET_PLACE_H_

#include <optional>
#include <string>
#include <vector>

#include "format/manifest/manifest_codec.h"
#include "reshard/status.h"
#include "src/os/output_directory.h"

namespace reshard {

// A name in a folder, whether there is something of that name or not.
struct TargetPlace {
  OutputDirectory folder;
  std::string name;
};

// Returns the place of `path` below `root`, or nothing where one of its folders does not exist.
// Errors: kAlreadyExists for anything else in the place of a folder; kIo.
Result<std::optional<TargetPlace>> FindPlace(const OutputDirectory& root, const std::string& path);

// As FindPlace, but makes the folders.
Result<TargetPlace> MakePlace(const OutputDirectory& root, const std::string& path);

// Returns what is at `path`, or nothing. Errors: as FindPlace.
Result<std::optional<OutputDirectory::Entry>> LookAt(const OutputDirectory& root,
                                                     const std::string& path);

// Returns whether `file` lies below `root` as a regular file of its size. Errors: as FindPlace.
Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file);

// Makes the entries of `root` and of all folders on the way to `files` durable; of those folders
// that exist. Errors: as FindPlace.
Status SyncFolders(const OutputDirectory& root, const std::vector<ManifestFile>& files);

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_TARGET_PLACE_H_
