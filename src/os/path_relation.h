// Where paths lie to one another, links and mounts looked through. No state; any thread.
#ifndef RESHARD_SRC_OS_PATH_RELATION_H_
#define RESHARD_SRC_OS_PATH_RELATION_H_

#include <string>

#include "reshard/status.h"

namespace reshard {

// Returns whether `path`, which need not exist, is the existing folder `folder` or lies in it,
// however it is spelled. Errors: kIo.
Result<bool> IsInside(const std::string& path, const std::string& folder);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_PATH_RELATION_H_
