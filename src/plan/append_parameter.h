// Parameters appended to the plan of a target file: headers, and the copies of what they hold.
//
// What fails leaves an incomplete plan. Pure functions.
#ifndef RESHARD_SRC_PLAN_APPEND_PARAMETER_H_
#define RESHARD_SRC_PLAN_APPEND_PARAMETER_H_

#include <string>
#include <vector>

#include "reshard/box.h"
#include "reshard/status.h"
#include "reshard/stored_array.h"
#include "src/io/source_files.h"
#include "src/plan/target_plan.h"
#include "src/source/placement.h"

namespace reshard {

// Appends the Values of a box of a tensor, gathered from `shards`: for each a header, which states
// `target_name` and `dims`, and, where there are bytes, its content. Errors: kMismatch when the
// shards do not cover the box exactly once, or when no file can be so large.
Status AppendTensor(const SourceTensor& tensor, const std::string& target_name,
                    const std::vector<PlacedPiece>& shards, const Box& box, const Shape& dims,
                    TargetPlan& plan);

// Appends the Values of a text or a MapTensor: as they stand in their file, headers included, where
// `target_name` is their own, else with headers of that name. What is taken are pieces of one
// tensor of bytes. Errors: kMismatch when no file can be so large.
Status AppendWholeValues(const StoredArray& parameter, const std::string& target_name, FileId file,
                         TargetPlan& plan);

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_APPEND_PARAMETER_H_
