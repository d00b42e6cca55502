// Checkpoints of PyTorch's programs that are known by their names and are not read: they lack the
// places of their tensors, or are files of a set.
//
// Functions without state; any thread.
#ifndef RESHARD_SRC_SHARDED_UNREAD_FAMILIES_H_
#define RESHARD_SRC_SHARDED_UNREAD_FAMILIES_H_

#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/os/path_kind.h"

namespace reshard {

// Fails with kUnsupported if the folder at `path`, which has these entries, is such a checkpoint.
// Names the program, and what helps.
Status CheckFamilyIsRead(const std::string& path, const std::vector<DirectoryEntry>& entries);

// Fails if the file at `path` is of a set, by its name, and means nothing without the others.
// Errors: kMismatch for a file of DCP; kUnsupported if the set is not read.
Status CheckFileStandsAlone(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_UNREAD_FAMILIES_H_
