// How paths of the local file system lie to one another. No state; any thread.
#ifndef RESHARD_SRC_OS_PATH_LOCATION_H_
#define RESHARD_SRC_OS_PATH_LOCATION_H_

#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/os/file_identity.h"

namespace reshard {

// The place of a path, whether an entry exists there or not. Folders are compared by identity, so
// two spellings of a place, through links or bind mounts, are equal. A value.
class PathLocation {
 public:
  // Follows links without a target, too: opening to write makes their target, and a folder may be
  // there by then. Errors: kIo; kUnsupported for a URL.
  static Result<PathLocation> Of(const std::string& path);

  // Returns the path from `folder` to here: empty if both are the same place, no value if this is
  // not inside.
  std::optional<std::string> From(const PathLocation& folder) const;

 private:
  // A folder above the place, or the place itself, that exists.
  struct Ancestor {
    FileIdentity::Key key;
    std::string rest;  // the way from there to the place
  };
  std::vector<Ancestor> ancestors_;  // innermost first
};

// Returns the folder of the entry at `path`: "a" of "a/b", "/" of "/b", "." of "b".
std::string FolderOf(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_PATH_LOCATION_H_
