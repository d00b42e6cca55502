// FilesRead: the files behind the paths that a call is given. No state; any thread.
#ifndef RESHARD_SRC_MINDSPORE_FILES_READ_H_
#define RESHARD_SRC_MINDSPORE_FILES_READ_H_

#include <string>
#include <vector>

#include "reshard/used_paths.h"

namespace reshard {

// Returns the checkpoints and other files of `used`, those that patterns name and those in folders
// of such other files included; of folders of ranks none. What cannot be listed is left out:
// reading it fails anyway.
std::vector<std::string> FilesRead(const UsedPaths& used);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_FILES_READ_H_
