// MakePlan: finds the source of each byte of a target file.
#ifndef RESHARD_SRC_PLAN_MAKE_PLAN_H_
#define RESHARD_SRC_PLAN_MAKE_PLAN_H_

#include <functional>

#include "reshard/status.h"
#include "src/plan/target_file.h"
#include "src/plan/target_plan.h"
#include "src/source/source.h"

namespace reshard {

using SegmentVisitor = std::function<void(const Segment& segment)>;

// Plans a file: its headers, as its container encodes them, and the copies of its contents. The
// plan is proved: the pieces of each array fill it, and the copies of each content write each byte
// exactly once. Opens files only to read their tables.
//
// `visit`, unless it is empty, gets each segment, in file order. Then the returned plan has no
// segments if they take more than `most_kept` bytes, because very many need not be in memory
// together.
// Errors:
//   kMismatch: source and target do not fit, a byte stays uncovered, or the file would be too large
//   as `file.make`, Source::Cover and Source::memory
Result<TargetPlan> MakePlan(const Source& source, const TargetFile& file,
                            const SegmentVisitor& visit = {}, uint64_t most_kept = 0);

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_MAKE_PLAN_H_
