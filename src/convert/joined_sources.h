// Checks that a run reads the same checkpoint as the earlier runs of its plan, whose set it joins.
#ifndef RESHARD_SRC_CONVERT_JOINED_SOURCES_H_
#define RESHARD_SRC_CONVERT_JOINED_SOURCES_H_

#include <string>

#include "reshard/status.h"
#include "src/convert/opened_conversion.h"
#include "src/job/job_spec.h"

namespace reshard {

// Compares source files that both this run and earlier runs of its plan read. It compares the
// digests of Values in earlier part records with those that the conversion would take now: at most
// 16 Values in each of 16 target files. An earlier target file counts only if its sources, by path
// and size, are those that it would be made from now. So hosts with different files of one
// checkpoint agree. Returns the path of a source file that has changed, or "". Errors: from reading
// sources.
Result<std::string> FindOtherSource(OpenedConversion& opened, const JobSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_JOINED_SOURCES_H_
