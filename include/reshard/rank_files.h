// RankFiles: which checkpoint file each rank folder contributes.
//
// Implemented in src/mindspore.
#ifndef RESHARD_RANK_FILES_H_
#define RESHARD_RANK_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

struct RankFileSummary {
  int64_t rank = 0;
  std::string path;
};

struct RankFiles {
  std::vector<RankFileSummary> files;  // by rank
  std::vector<std::string> warnings;
};

// Chooses one file of each folder rank_N of `folder`, or of each file or folder that a pattern with
// {rank} names (ConvertOptions::source, reshard/convert.h): that of the greatest (epoch, step), or
// the one whose name ends in `suffix` + ".ckpt" where `suffix` is not empty. Errors: kNotFound,
// kMismatch when steps differ or a choice is open (lists them), kUnsupported, kIo.
Result<RankFiles> ListRankFiles(const std::string& folder, const std::string& suffix);

}  // namespace reshard

#endif  // RESHARD_RANK_FILES_H_
