// Reads group_info files (SPEC.md), which a training run writes where GROUP_INFO_FILE is set.
//
// Takes bytes and opens nothing. A pure function; any number of threads may call it.
#ifndef RESHARD_SRC_MINDSPORE_GROUP_INFO_CODEC_H_
#define RESHARD_SRC_MINDSPORE_GROUP_INFO_CODEC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// A file of more bytes is not read. That of a rank among 16,384 has a few MB.
inline constexpr uint64_t kMaxGroupInfoBytes = uint64_t{64} << 20;

// Returns the ranks that hold the same weights (ckpt_restore_rank_list), ascending. `path` is for
// messages. Errors: kCorrupt (path, offset) for what is no group_info file, naming what it is
// instead where that can be told; for one without the list, or whose list has a rank twice or one
// beyond kMaxRanks.
Result<std::vector<int64_t>> ParseGroupInfo(const std::string& path, std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_GROUP_INFO_CODEC_H_
