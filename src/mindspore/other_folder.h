// Tells the kind of a folder that was given as a checkpoint of ranks and has no rank folders.
#ifndef RESHARD_SRC_MINDSPORE_OTHER_FOLDER_H_
#define RESHARD_SRC_MINDSPORE_OTHER_FOLDER_H_

#include <string>
#include <vector>

#include "src/os/path_kind.h"

namespace reshard {

// Returns the kind of a folder by the names of its entries, with advice; "" if the kind is unknown.
// Looks at names only.
std::string DescribeOtherFolder(const std::vector<DirectoryEntry>& entries);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_OTHER_FOLDER_H_
