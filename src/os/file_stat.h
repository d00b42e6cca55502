// struct stat, read as a FileIdentity. Only for sources in src/os: it brings <sys/stat.h> along.
#ifndef RESHARD_SRC_OS_FILE_STAT_H_
#define RESHARD_SRC_OS_FILE_STAT_H_

#include <sys/stat.h>

#include "src/os/file_identity.h"

namespace reshard {

FileIdentity IdentityFromStat(const struct stat& status);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_STAT_H_
