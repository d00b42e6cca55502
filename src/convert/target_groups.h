// Which target files are written together: those that read the same sources.
#ifndef RESHARD_SRC_CONVERT_TARGET_GROUPS_H_
#define RESHARD_SRC_CONVERT_TARGET_GROUPS_H_

#include <cstddef>
#include <vector>

#include "reshard/convert.h"
#include "src/convert/target_output.h"

namespace reshard {

// Returns the numbers of `parts`, which are parts of `targets`, in groups of at most `most`: those
// whose source ranks are the same are in one group, in order; one that shares its sources with
// nobody is alone. Groups are ordered by their first part. Any thread.
std::vector<std::vector<size_t>> GroupTargets(const std::vector<TargetFileSummary>& targets,
                                              const std::vector<TargetShare>& parts, size_t most);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_TARGET_GROUPS_H_
