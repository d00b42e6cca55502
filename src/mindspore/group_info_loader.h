// Lists of ranks that hold the same weights, from the disk. Any number of threads may call it.
#ifndef RESHARD_SRC_MINDSPORE_GROUP_INFO_LOADER_H_
#define RESHARD_SRC_MINDSPORE_GROUP_INFO_LOADER_H_

#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/holder_groups.h"

namespace reshard {

// Reads group_info files; of a path with {rank} those that are there. Errors: kNotFound; kCorrupt
// as ParseGroupInfo; kMismatch as HolderGroups::Make; kIo.
Result<HolderGroups> LoadGroupInfo(const std::vector<std::string>& paths);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_GROUP_INFO_LOADER_H_
