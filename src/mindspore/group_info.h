// group_info files (SPEC.md), which a training run writes if GROUP_INFO_FILE is set: lists of ranks
// that hold the same weights. Any number of threads may call these functions.
#ifndef RESHARD_SRC_MINDSPORE_GROUP_INFO_H_
#define RESHARD_SRC_MINDSPORE_GROUP_INFO_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/holder_groups.h"

namespace reshard {

// A larger file is not read. The file of a rank among 16,384 has a few MB.
inline constexpr uint64_t kMaxGroupInfoBytes = uint64_t{64} << 20;

// Returns the ranks that hold the same weights (ckpt_restore_rank_list), ascending. `path` is for
// messages.
// Errors: kCorrupt (path, offset) for
//   another kind of file, named if it is known
//   a file without the list
//   a list with a repeated rank, or with one beyond kMaxRanks
Result<std::vector<int64_t>> ParseGroupInfo(const std::string& path, std::string_view bytes);

// Reads group_info files; for a path with {rank}, the existing files. Errors: kNotFound; kCorrupt
// as ParseGroupInfo; kMismatch as HolderGroups::Make; kIo.
Result<HolderGroups> LoadGroupInfo(const std::vector<std::string>& paths);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_GROUP_INFO_H_
