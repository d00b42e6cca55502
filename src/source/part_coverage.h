// The proof that the listed parts of a tensor are the tensor: equal boxes are replicas, others are
// disjoint, and together they are whole.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_SOURCE_PART_COVERAGE_H_
#define RESHARD_SRC_SOURCE_PART_COVERAGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/source/part_list.h"

namespace reshard {

// Returns the first box, in row-major order, of elements of `whole` that are in none of `boxes`; no
// value if there is none, or if the search takes more than MostBoxSteps. The boxes lie in `whole`.
// Takes near-linear time for the boxes of a grid.
std::optional<Box> FirstHole(const Box& whole, const std::vector<Box>& boxes);

// Fails with kMismatch if `tensor`, of `list`, is not covered exactly. The message has the first
// two boxes that overlap and their files, or the first hole. `path_of` returns the path of the file
// of a rank. Takes near-linear time for the boxes of a grid. Fails with kResourceExhausted for
// boxes that interlock so much that the proof takes more than MostBoxSteps.
Status CheckCoverage(const PartList& list, const PartList::Tensor& tensor,
                     const std::function<std::string(int64_t rank)>& path_of);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_PART_COVERAGE_H_
