// CheckOutputsOutside: whether the outputs beside a call (src/os/used_files.h) leave a checkpoint's
// folder alone. No state; any thread.
#ifndef RESHARD_SRC_MINDSPORE_OUTPUT_CHECK_H_
#define RESHARD_SRC_MINDSPORE_OUTPUT_CHECK_H_

#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// Fails with kInvalidArgument when an output is, or would lie in the place of, something that
// belongs to the checkpoint or target in `folder`: one of `files`, which are or will be there, a
// file that a manifest there lists, or anything in folders of ranks, among part records, in the
// staging folder, or called as manifests and lists of checksums are. What CheckOutputs knows fails,
// too. `folder` need not exist.
Status CheckOutputsOutside(const std::string& folder, const std::vector<std::string>& files = {});

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_OUTPUT_CHECK_H_
