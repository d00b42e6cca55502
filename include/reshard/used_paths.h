// UsedPaths: the files that a call reads and writes, and CheckOutput, which decides for all calls
// whether one more file may be written.
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

// Empty paths, and those where there is nothing, stand for nothing.
struct UsedPaths {
  // Checkpoints that are read: files, folders with rank_N/*.ckpt, patterns with {rank}.
  std::vector<std::string> checkpoints = {};
  // Other files that are read, or folders and the *.ckpt and *.json in them; patterns.
  std::vector<std::string> files = {};
  std::vector<std::string> targets = {};  // folders of conversions
  std::vector<std::string> outputs = {};  // single files that are written
};

// Fails with kInvalidArgument when `output`, a file to be written or appended to, is by whatever
// path or link one of the files in `used`, or has its place in a checkpoint or target folder among
// the files of ranks, the manifests, the part records or what is staged. That a file may be
// replaced does not change it. Other errors: kIo.
Status CheckOutput(const std::string& output, const UsedPaths& used);

}  // namespace v0_1
}  // namespace reshard

#endif  // RESHARD_USED_PATHS_H_
