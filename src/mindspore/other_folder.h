// Tells what a folder is that was given as a checkpoint of ranks and has no rank folders.
#ifndef RESHARD_SRC_MINDSPORE_OTHER_FOLDER_H_
#define RESHARD_SRC_MINDSPORE_OTHER_FOLDER_H_

#include <string>
#include <vector>

#include "src/os/path_kind.h"

namespace reshard {

// Returns what the names of its entries say that a folder is, and what to do about it; nothing if
// they are those of no kind that is known. Only names are looked at.
std::string DescribeOtherFolder(const std::vector<DirectoryEntry>& entries);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_OTHER_FOLDER_H_
