// What lies at a path: listings of folders and kinds of files. No state; any thread.
#ifndef RESHARD_SRC_OS_DIRECTORY_LISTING_H_
#define RESHARD_SRC_OS_DIRECTORY_LISTING_H_

#include <string>
#include <vector>

#include "reshard/status.h"

namespace reshard {

// Symbolic links count as what they lead to; one that leads nowhere is neither.
struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  bool is_regular = false;
};

// Returns the entries of a folder, except "." and "..", sorted by the bytes of their names.
// Errors: kNotFound, kIo.
Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path);

enum class PathKind {
  kMissing,  // nothing there, or a link that leads nowhere
  kFile,
  kDirectory,
  kOther,  // a pipe, a device, a socket
};

// Returns what `path` leads to, symbolic links followed.
// Errors: kIo, where the system does not say.
Result<PathKind> KindOf(const std::string& path);

// Returns ok where `path` leads to a folder. Errors: kNotFound for a file or the like, or where
// there is nothing; kIo.
Status CheckIsFolder(const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_DIRECTORY_LISTING_H_
