// Whether a target folder holds already what a conversion would write.
#ifndef RESHARD_SRC_CONVERT_PUBLISHED_SET_H_
#define RESHARD_SRC_CONVERT_PUBLISHED_SET_H_

#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/convert/work_list.h"
#include "src/job/job_spec.h"
#include "src/mindspore/planner.h"

namespace reshard {

// Returns whether the manifest there is of this plan, names these sources by path and size, and is
// newer than any of them, and whether samples of the files that it lists are what `planner` takes
// from the sources. The job finds out whether all of the files are there. Errors: those of reading
// the sources, and of the samples kIo.
Result<bool> IsPublished(OpenedSource& source, const Planner& planner, const WorkList& work,
                         const JobSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_PUBLISHED_SET_H_
