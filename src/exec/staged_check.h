// Whether a file that an interrupted run finished still is what was recorded of it.
#ifndef RESHARD_SRC_EXEC_STAGED_CHECK_H_
#define RESHARD_SRC_EXEC_STAGED_CHECK_H_

#include <cstdint>
#include <stop_token>
#include <string>

#include "reshard/status.h"

namespace reshard {

// Reads the whole file at `path` and returns whether it has this size and this digest, 32
// hexadecimal digits. Any thread. Errors: those of SourceFiles; kCancelled.
Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_STAGED_CHECK_H_
