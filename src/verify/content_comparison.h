// Contents that ought to be the same in several files, compared byte by byte.
#ifndef RESHARD_SRC_VERIFY_CONTENT_COMPARISON_H_
#define RESHARD_SRC_VERIFY_CONTENT_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/mindspore/merge_plan.h"
#include "src/verify/shared_work.h"

namespace reshard {

// One that is not as the first of its group.
struct ContentDifference {
  size_t group = 0;
  size_t content = 0;
  uint64_t offset = 0;  // of the first byte that differs
};

// Returns the bytes that comparing `groups` reads.
uint64_t BytesToCompare(std::span<const EqualContents> groups);

// Reads each content once, in step with the others of its group, and returns those that differ from
// the first, by group and content. Errors: those of SourceFiles; kCancelled.
Result<std::vector<ContentDifference>> CompareContents(SourceFiles& files,
                                                       std::span<const EqualContents> groups,
                                                       const SharedWork& work);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_CONTENT_COMPARISON_H_
