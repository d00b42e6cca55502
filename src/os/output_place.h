// Places in a folder, given by relative paths: each component is opened by itself, and no symbolic
// link is followed. No state; any thread.
#ifndef RESHARD_SRC_OS_OUTPUT_PLACE_H_
#define RESHARD_SRC_OS_OUTPUT_PLACE_H_

#include <optional>
#include <string>

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

}  // namespace reshard

#endif  // RESHARD_SRC_OS_OUTPUT_PLACE_H_
