// The proof that a set of boxes covers a box exactly once.
#ifndef RESHARD_SRC_TENSOR_COVERAGE_H_
#define RESHARD_SRC_TENSOR_COVERAGE_H_

#include <vector>

#include "reshard/box.h"

namespace reshard {

// Returns true when the boxes `parts` are disjoint, lie in `whole` and together have its volume.
// Near-linear for the boxes of a grid, whatever their order; the parts need not come from one.
bool CoversExactly(const Box& whole, const std::vector<Box>& parts);

}  // namespace reshard

#endif  // RESHARD_SRC_TENSOR_COVERAGE_H_
