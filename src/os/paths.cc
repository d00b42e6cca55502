#include "src/os/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "src/base/status_macros.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Whether a failed stat means that there is no entry. A circle of links has no target either.
bool LeadsNowhere(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

// Sets the kind of `entry`.
Status Classify(int directory, const dirent& found, const std::string& path,
                DirectoryEntry* entry) {
  auto mode = static_cast<mode_t>(DTTOIF(found.d_type));  // 0: the file system does not say
  const auto look = [&](int flags) -> Status {
    struct stat status {};
    if (fstatat(directory, found.d_name, &status, flags) == 0) {
      mode = status.st_mode;
    } else if (!LeadsNowhere(errno)) {
      return ErrnoStatus(errno, "look up", path + "/" + entry->name);
    }
    return {};
  };
  if (mode == 0) RESHARD_RETURN_IF_ERROR(look(AT_SYMLINK_NOFOLLOW));
  entry->is_link = S_ISLNK(mode);
  if (entry->is_link) RESHARD_RETURN_IF_ERROR(look(0));
  entry->is_directory = S_ISDIR(mode);
  entry->is_regular = S_ISREG(mode);
  return {};
}

}  // namespace

FileIdentity IdentityFromStat(const struct stat& status) {
  return FileIdentity({.device = status.st_dev,
                       .inode = status.st_ino,
                       .size = static_cast<uint64_t>(status.st_size),
                       .mtime_ns = Nanoseconds(status.st_mtim),
                       .ctime_ns = Nanoseconds(status.st_ctim)});
}

Result<FileIdentity> IdentityOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ErrnoStatus(errno, "look up", path);
  return IdentityFromStat(status);
}

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
    if (!LeadsNowhere(errno)) return ErrnoStatus(errno, "look up", path);
    RESHARD_RETURN_IF_ERROR(CheckIsPath(path));
    return PathKind::kMissing;
  }
  if (S_ISREG(status.st_mode)) return PathKind::kFile;
  return S_ISDIR(status.st_mode) ? PathKind::kDirectory : PathKind::kOther;
}

}  // namespace reshard
