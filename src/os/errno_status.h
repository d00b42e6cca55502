// errno -> Status, in one place.
#ifndef RESHARD_SRC_OS_ERRNO_STATUS_H_
#define RESHARD_SRC_OS_ERRNO_STATUS_H_

#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {

// Returns the failure of a system call: `error` is its errno (not 0), `operation` a verb that
// follows "cannot", such as "open" or "write 4096 bytes at offset 8 of". The message reads
//     PATH: cannot OPERATION: what the system says; what to do about it
// ENOENT becomes kNotFound, ENOMEM kResourceExhausted, everything else kIo.
Status ErrnoStatus(int error, std::string_view operation, const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_ERRNO_STATUS_H_
