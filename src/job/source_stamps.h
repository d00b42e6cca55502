// Differences between the source files of a run and those of an earlier run, in words.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_JOB_SOURCE_STAMPS_H_
#define RESHARD_SRC_JOB_SOURCE_STAMPS_H_

#include <string>
#include <vector>

#include "src/record/manifest_codec.h"

namespace reshard {

// Returns the difference of the files that a run reads `now`, such as "source a.ckpt was modified".
// Empty if `then` has the same stamps for all these files.
std::string DescribeChanges(const std::vector<SourceStamp>& then,
                            const std::vector<SourceStamp>& now);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_SOURCE_STAMPS_H_
