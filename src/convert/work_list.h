// WorkList: the work of a conversion, file by file, as planned.
//
// A plain value.
#ifndef RESHARD_SRC_CONVERT_WORK_LIST_H_
#define RESHARD_SRC_CONVERT_WORK_LIST_H_

#include <cstdint>
#include <vector>

#include "reshard/convert.h"

namespace reshard {

struct WorkList {
  std::vector<PlanReport::SourceFile> sources;  // that are read, by rank
  std::vector<PlanReport::TargetFile> targets;  // that are written, by rank
  uint64_t bytes_read = 0;                      // content bytes taken from the sources
  uint64_t bytes_written = 0;                   // the sum of the target sizes
  uint64_t runs = 0;                            // contiguous stretches that are copied
  uint64_t shortest_run = 0;                    // bytes; 0 when there is no run
  uint64_t longest_run = 0;
  uint64_t largest_plan_bytes = 0;  // of memory, while one target file is open
  // Additional memory while a lane plans a target file or digests a chunk.
  uint64_t largest_step_bytes = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_WORK_LIST_H_
