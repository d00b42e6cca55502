// What lies at a path, and how paths lie to one another. No state; any thread.
#ifndef RESHARD_SRC_OS_PATHS_H_
#define RESHARD_SRC_OS_PATHS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

struct stat;

namespace reshard {

// FileIdentity: what tells that a file is still the one that was opened, unchanged.
//
// A plain value. Times are nanoseconds since 1970; how finely a file system counts them is its own
// matter.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;  // bytes
  int64_t mtime_ns = 0;
  // Set by the kernel at every change of content or attributes; no program can set it back, as it
  // can mtime.
  int64_t ctime_ns = 0;

  bool operator==(const FileIdentity&) const = default;
};

// Returns the identity of the file at `path`, symbolic links followed.
// Errors: kNotFound, kIo.
Result<FileIdentity> IdentityOf(const std::string& path);

// Returns in words how `after` differs from `before`, such as "8192 bytes, were 4096".
std::string DescribeChange(const FileIdentity& before, const FileIdentity& after);

// For sources that include <sys/stat.h>.
FileIdentity IdentityFromStat(const struct stat& status);

// An entry of a folder. Symbolic links count as what they lead to; one that leads nowhere is
// neither.
struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  bool is_regular = false;
};

// Returns the entries of a folder, except "." and "..", sorted by the bytes of their names.
// Errors: kNotFound, kIo.
Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path);

// Returns folder/name; `name` where the folder is empty.
std::string PathIn(const std::string& folder, std::string_view name);

enum class PathKind {
  kMissing,  // nothing there, or a link that leads nowhere
  kFile,
  kDirectory,
  kOther,  // a pipe, a device, a socket
};

// Returns what `path` leads to, symbolic links followed.
// Errors: kIo, where the system does not say; kUnsupported for a URL.
Result<PathKind> KindOf(const std::string& path);

// Returns ok where `path` leads to a folder. Errors: kNotFound for a file or the like, or where
// there is nothing; kIo.
Status CheckIsFolder(const std::string& path);

// The place that a path leads to, whether there is anything or not. Folders are told by what they
// are, so that two spellings of a place, through links or bind mounts, are the same one. A value.
class PathLocation {
 public:
  // Follows links that lead nowhere, too: opening to write makes what they lead to, and a folder
  // may be there by then. Errors: kIo; kUnsupported for a URL.
  static Result<PathLocation> Of(const std::string& path);

  // Returns the way from `folder` to here: empty when both are one place, nothing when this does
  // not lie in it.
  std::optional<std::string> From(const PathLocation& folder) const;

 private:
  // A folder above the place, or the place itself, that exists.
  struct Ancestor {
    uint64_t device = 0;
    uint64_t inode = 0;
    std::string rest;  // the way from there to the place
  };
  std::vector<Ancestor> ancestors_;  // innermost first
};

// Returns whether `path`, which need not exist, is the existing folder `folder` or lies in it,
// however it is spelled. Errors: kNotFound, kIo.
Result<bool> IsInside(const std::string& path, const std::string& folder);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_PATHS_H_
