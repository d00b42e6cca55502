// Rank patterns: paths with {rank} in them, which name a file or a folder for each rank.
//
// node{rank}/CKP_1-4_32.ckpt, ckpt/rank_{rank}/llm_rank_{rank}-1_100.ckpt, run/node{rank}. All
// {rank} of one path stand for the same digits. Looks at names only. Any number of threads may call
// these functions.
#ifndef RESHARD_SRC_MINDSPORE_RANK_PATTERN_H_
#define RESHARD_SRC_MINDSPORE_RANK_PATTERN_H_

#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/mindspore/rank_listing.h"
#include "src/os/paths.h"

namespace reshard {

inline constexpr std::string_view kRankPlaceholder = "{rank}";

bool IsRankPattern(std::string_view path);

struct PatternListing {
  std::string base;                // the folder before the first name with {rank}; may be empty
  std::vector<RankListing> ranks;  // ascending, at least one; of a file that a pattern names as the
                                   // only candidate, of a folder those in it
};

// Lists what there is for a pattern. Costs one listing, and one more for each folder that it ends
// at. Errors: kInvalidArgument for "." and ".." behind {rank}; kNotFound where nothing matches;
// kMismatch where two names stand for one rank; kUnsupported for safetensors; kIo.
Result<PatternListing> ListPattern(const std::string& pattern);

// Returns the name with {rank} that the most of `entries` (folders and checkpoints, at least two)
// differ from by one number; empty where there is none.
std::string GuessPattern(const std::vector<DirectoryEntry>& entries);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_RANK_PATTERN_H_
