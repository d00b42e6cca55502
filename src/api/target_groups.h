// Which target files are written together: those that read the same sources.
#ifndef RESHARD_SRC_API_TARGET_GROUPS_H_
#define RESHARD_SRC_API_TARGET_GROUPS_H_

#include <cstddef>
#include <vector>

#include "reshard/convert.h"

namespace reshard {

// Returns the numbers of `targets` in groups of at most `most`: files whose source ranks are the
// same are in one group, in order; a file that shares its sources with nobody is alone. Groups are
// ordered by their first file. Any thread.
std::vector<std::vector<size_t>> GroupTargets(const std::vector<TargetFileSummary>& targets,
                                              size_t most);

}  // namespace reshard

#endif  // RESHARD_SRC_API_TARGET_GROUPS_H_
