// What a target folder holds already of a conversion: all of it, or the files of runs of its plan
// that it would join.
#ifndef RESHARD_SRC_CONVERT_PUBLISHED_SET_H_
#define RESHARD_SRC_CONVERT_PUBLISHED_SET_H_

#include <string>

#include "reshard/status.h"
#include "src/convert/opened_source.h"
#include "src/convert/work_list.h"
#include "src/job/job_spec.h"
#include "src/plan/target.h"

namespace reshard {

// Returns whether the manifest there is of this plan, names these sources by path and size, and is
// newer than any of them, and whether samples of the files that it lists are what `target` takes
// from the sources. The job finds out whether all of the files are there. Errors: those of reading
// the sources, and of the samples kIo.
Result<bool> IsPublished(OpenedSource& source, const Target& target, const WorkList& work,
                         const JobSpec& spec);

// Compares source files that both this run and earlier runs of its plan read: the digests of some
// Values that the part records there state with those of what `target` takes for them now, at most
// 16 Values of 16 target files. A target file of before counts only if its sources, by path and
// size, are those that it would be made from now: so hosts that hold other files of one checkpoint
// agree. Returns the path of a source file that is another one now, or nothing. Errors: those of
// reading sources.
Result<std::string> FindOtherSource(OpenedSource& source, const Target& target,
                                    const JobSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_PUBLISHED_SET_H_
