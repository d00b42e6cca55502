// What lies at a path.
#ifndef RESHARD_SRC_OS_PATH_KIND_H_
#define RESHARD_SRC_OS_PATH_KIND_H_

#include <string>

namespace reshard {

enum class PathKind {
  kMissing,  // nothing there, or a link that leads nowhere
  kFile,
  kDirectory,
  kOther,  // a pipe, a device, a socket
};

// An entry of a folder. Symbolic links count as what they lead to; one that leads nowhere is
// neither.
struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  bool is_regular = false;
  bool is_link = false;  // symbolic
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_PATH_KIND_H_
