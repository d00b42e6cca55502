// Whether a run reads the same checkpoint as earlier runs of its plan, whose set it joins.
#ifndef RESHARD_SRC_CONVERT_JOINED_SOURCES_H_
#define RESHARD_SRC_CONVERT_JOINED_SOURCES_H_

#include <string>

#include "reshard/status.h"
#include "src/convert/opened_conversion.h"
#include "src/job/job_spec.h"

namespace reshard {

// Compares source files that both this run and earlier runs of its plan read: the digests of some
// Values that the part records there state with those of what the conversion takes for them now, at
// most 16 Values of 16 target files. A target file of before counts only if its sources, by path
// and size, are those that it would be made from now: so hosts that hold other files of one
// checkpoint agree. Returns the path of a source file that is another one now, or nothing. Errors:
// those of reading sources.
Result<std::string> FindOtherSource(OpenedConversion& opened, const JobSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_JOINED_SOURCES_H_
