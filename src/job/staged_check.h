// What staged files hold: read back where only that proves it.
#ifndef RESHARD_SRC_JOB_STAGED_CHECK_H_
#define RESHARD_SRC_JOB_STAGED_CHECK_H_

#include <cstdint>
#include <stop_token>
#include <string>

#include "reshard/status.h"
#include "src/write/target_record.h"

namespace reshard {

// Reads the whole file at `path` and returns whether it has this size and this digest, 32
// hexadecimal digits. Any thread. Errors: those of SourceFiles; kCancelled.
Result<bool> IsAsRecorded(const std::string& path, uint64_t expected_size,
                          const std::string& expected_digest, const std::stop_token& stop);

// Reads the whole file at `path` in its order. Any thread. Errors: those of SourceFiles;
// kCancelled.
Result<FileDigests> DigestFile(const std::string& path, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_STAGED_CHECK_H_
