#include "src/os/directory_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/errno_status.h"

namespace reshard {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Whether a failed stat means that nothing is there; a circle of links leads nowhere, too.
bool LeadsNowhere(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

// Fills in what `entry` is.
Status Classify(int directory, const dirent& found, const std::string& path,
                DirectoryEntry* entry) {
  if (found.d_type != DT_UNKNOWN && found.d_type != DT_LNK) {
    entry->is_directory = found.d_type == DT_DIR;
    entry->is_regular = found.d_type == DT_REG;
    return {};
  }
  struct stat status {};
  if (fstatat(directory, found.d_name, &status, 0) == 0) {
    entry->is_directory = S_ISDIR(status.st_mode);
    entry->is_regular = S_ISREG(status.st_mode);
  } else if (!LeadsNowhere(errno)) {
    return ErrnoStatus(errno, "look at", path + "/" + entry->name);
  }
  return {};
}

}  // namespace

Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) {
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(path.c_str()));
  if (directory == nullptr) return ErrnoStatus(errno, "list the folder", path);
  std::vector<DirectoryEntry> entries;
  while (true) {
    errno = 0;
    const dirent* found = readdir(directory.get());
    if (found == nullptr) break;
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    DirectoryEntry entry{.name = std::string(name)};
    RESHARD_RETURN_IF_ERROR(Classify(dirfd(directory.get()), *found, path, &entry));
    entries.push_back(std::move(entry));
  }
  if (errno != 0) return ErrnoStatus(errno, "list the folder", path);
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

Result<PathKind> KindOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (LeadsNowhere(errno)) return PathKind::kMissing;
    return ErrnoStatus(errno, "look at", path);
  }
  if (S_ISREG(status.st_mode)) return PathKind::kFile;
  return S_ISDIR(status.st_mode) ? PathKind::kDirectory : PathKind::kOther;
}

Status CheckIsFolder(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(path));
  if (kind == PathKind::kDirectory) return {};
  return NotFoundError(fmt::format("{}: expected a folder, found {}", Escape(path),
                                   kind == PathKind::kMissing ? "nothing"
                                   : kind == PathKind::kFile  ? "a file"
                                                              : "a device, socket or pipe"));
}

}  // namespace reshard
