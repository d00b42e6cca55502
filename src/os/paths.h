// The entries at paths of the local file system. No state; any thread.
//
// For os and Storage (src/io/storage.h); other code uses Storage.
#ifndef RESHARD_SRC_OS_PATHS_H_
#define RESHARD_SRC_OS_PATHS_H_

#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/os/file_identity.h"
#include "src/os/path_kind.h"

struct stat;

namespace reshard {

// Returns the identity of the file at `path`, symbolic links followed.
// Errors: kNotFound, kIo.
Result<FileIdentity> IdentityOf(const std::string& path);

// For sources that include <sys/stat.h>.
FileIdentity IdentityFromStat(const struct stat& status);

// Returns the entries of a folder, except "." and "..", sorted by the bytes of their names.
// Errors: kNotFound, kIo.
Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path);

// Returns the kind of the entry at `path`, following symbolic links. Errors: kIo if the system does
// not say; kUnsupported for a URL.
Result<PathKind> KindOf(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_PATHS_H_
