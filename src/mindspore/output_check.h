// CheckOutputsOutside: whether the outputs beside a call (src/os/used_files.h) leave a checkpoint's
// folder alone. No state; any thread.
#ifndef RESHARD_SRC_MINDSPORE_OUTPUT_CHECK_H_
#define RESHARD_SRC_MINDSPORE_OUTPUT_CHECK_H_

#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// Fails with kInvalidArgument if an output is, or would take the place of, a file of the checkpoint
// or target in `folder`. These are `files`, which exist or will, files that a manifest there lists,
// all files in folders of ranks, among part records and in the staging folder, and files with the
// names of manifests and lists of checksums. Also fails with the errors of CheckOutputs. `folder`
// need not exist.
Status CheckOutputsOutside(const std::string& folder, const std::vector<std::string>& files = {});

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_OUTPUT_CHECK_H_
