// UsedPaths: the files that a call reads and writes. CheckOutput: whether a further file, such as a
// report, may be written beside them.
//
// Plain values; the functions may run in several threads at once.
//
// Implemented in src/mindspore.
#ifndef RESHARD_USED_PATHS_H_
#define RESHARD_USED_PATHS_H_

#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {
inline namespace v0_1 {

// Empty paths, and paths where nothing exists, are ignored.
struct UsedPaths {
  // Checkpoints that are read: files, folders with rank_N/*.ckpt, patterns with {rank}.
  std::vector<std::string> checkpoints = {};
  // Other files that are read, or folders and the *.ckpt and *.json in them; patterns.
  std::vector<std::string> files = {};
  std::vector<std::string> targets = {};  // folders of conversions
  std::vector<std::string> outputs = {};  // single files that are written
};

// Fails with kInvalidArgument when `output`, a file to be written or appended to, is one of the
// files in `used`, by whatever path or link, or would lie in a checkpoint or target folder where
// files of ranks, manifests, part records or staged files lie. Leave to replace files makes no
// difference. Other errors: kIo.
Status CheckOutput(const std::string& output, const UsedPaths& used);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_USED_PATHS_H_
