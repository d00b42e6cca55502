// Device grids: which rank holds which shard of a parameter, before and after a conversion.
#ifndef RESHARD_SRC_API_DEVICE_GRIDS_H_
#define RESHARD_SRC_API_DEVICE_GRIDS_H_

#include <string>
#include <vector>

#include "reshard/layout_report.h"
#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/mindspore/mindspore_target.h"
#include "src/plan/plan_notes.h"

namespace reshard {

// Returns the grids of the parameters `names`, or of one: of those that are cut on either side (of
// all where none is), of those that are no optimizer's copies (of all where none is), the largest.
// `notes` are those of the plans of `plan`. Errors: kNotFound for a
// name that none of them writes; those of MakeGrid and of opening files.
Result<std::vector<ParameterGrids>> MakeDeviceGrids(const OpenedSource& source,
                                                    const MindSporeTarget& planner,
                                                    const PlanReport& plan, const PlanNotes& notes,
                                                    const std::vector<std::string>& names);

}  // namespace reshard

#endif  // RESHARD_SRC_API_DEVICE_GRIDS_H_
