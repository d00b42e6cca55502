// The kinds of entries at a path.
#ifndef RESHARD_SRC_OS_PATH_KIND_H_
#define RESHARD_SRC_OS_PATH_KIND_H_

#include <string>

namespace reshard {

enum class PathKind {
  kMissing,  // no entry, or a link without a target
  kFile,
  kDirectory,
  kOther,  // a pipe, a device, a socket
};

// An entry of a folder. A symbolic link counts as its target. A link without a target is neither
// file nor folder.
struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  bool is_regular = false;
  bool is_link = false;  // symbolic
};

}  // namespace reshard

#endif  // RESHARD_SRC_OS_PATH_KIND_H_
