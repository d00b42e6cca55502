// WorkList: the work of a conversion, file by file, as planned.
//
// A plain value.
#ifndef RESHARD_SRC_CONVERT_WORK_LIST_H_
#define RESHARD_SRC_CONVERT_WORK_LIST_H_

#include <cstdint>

#include "reshard/convert.h"

namespace reshard {

// The report of a plan, without findings and limits, which are known later.
struct WorkList : PlanReport {
  uint64_t largest_plan_bytes = 0;  // of memory, while one target file is open
  // Additional memory while a lane plans a target file or digests a chunk.
  uint64_t largest_step_bytes = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_WORK_LIST_H_
