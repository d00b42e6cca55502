// MakePlan: where each byte of a target file comes from.
#ifndef RESHARD_SRC_PLAN_MAKE_PLAN_H_
#define RESHARD_SRC_PLAN_MAKE_PLAN_H_

#include <functional>

#include "reshard/status.h"
#include "src/plan/target_file.h"
#include "src/plan/target_plan.h"
#include "src/source/source.h"

namespace reshard {

using SegmentVisitor = std::function<void(const Segment& segment)>;

// Plans a file: its headers, as its container encodes them, and the copies of what they announce.
// The plan is proved: the pieces of each array fill it, and the copies of each content write each
// of its bytes exactly once. Where `visit` is not empty, it is called with each segment, in file
// order, and the plan that is returned has none when they take more than `most_kept` bytes: very
// many need not be in memory together. Opens no file but to learn its table. Errors: kMismatch when
// source and target do not fit, a byte stays uncovered, or no file can be so large; those of
// `file.make`, Source::Cover and Source::memory.
Result<TargetPlan> MakePlan(const Source& source, const TargetFile& file,
                            const SegmentVisitor& visit = {}, uint64_t most_kept = 0);

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_MAKE_PLAN_H_
