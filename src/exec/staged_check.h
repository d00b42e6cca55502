// Whether a file that an interrupted run finished still is what its part record says.
#ifndef RESHARD_SRC_EXEC_STAGED_CHECK_H_
#define RESHARD_SRC_EXEC_STAGED_CHECK_H_

#include <stop_token>
#include <string>

#include "format/manifest/part_record.h"
#include "reshard/status.h"

namespace reshard {

// Reads the whole file at `path` and returns whether it has the digest and the size of `head`,
// which has one. Any thread. Errors: those of SourceFiles; kCancelled.
Result<bool> IsAsRecorded(const std::string& path, const PartRecordHead& head,
                          const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_STAGED_CHECK_H_
