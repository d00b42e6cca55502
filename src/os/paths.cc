#include "src/os/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "src/base/quote.h"
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
    return ErrnoStatus(errno, "look up", path + "/" + entry->name);
  }
  return {};
}

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as the kernel has it
constexpr int kMaxAttempts = 1000;

// Returns the link in `path`, the innermost one, that leads nowhere; nothing where there is none.
// All others have been followed.
fs::path DanglingLink(const fs::path& path) {
  for (fs::path link = path; link.has_relative_path(); link = link.parent_path()) {
    std::error_code none;  // what cannot be looked at is no link
    if (fs::is_symlink(fs::symlink_status(link, none))) return link;
  }
  return {};
}

// Returns the path without links and without a slash at its end.
fs::path ResolveOnce(const std::string& path, std::error_code& error) {
  fs::path next = fs::absolute(path, error);
  for (int links = 0; links < kMaxLinks && !error; ++links) {
    fs::path resolved = fs::weakly_canonical(next, error);
    if (error) return {};
    if (!resolved.has_filename()) resolved = resolved.parent_path();
    const fs::path link = DanglingLink(resolved);
    if (link.empty()) return resolved;
    next = link.parent_path() / fs::read_symlink(link, error);
    if (link != resolved) next /= resolved.lexically_relative(link);
  }
  if (!error) error.assign(ELOOP, std::generic_category());
  return {};
}

// A path need not exist: what is "not found" went away while it was being resolved, as the work
// folder of another run does, and the path is resolved again.
Result<fs::path> Resolve(const std::string& path) {
  std::error_code error;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    error.clear();
    fs::path resolved = ResolveOnce(path, error);
    if (!error) return resolved;
    if (error.value() != ENOENT) break;
  }
  return ErrnoStatus(error.value(), "resolve", path);
}

}  // namespace

FileIdentity IdentityFromStat(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<uint64_t>(status.st_size),
          .mtime_ns = Nanoseconds(status.st_mtim),
          .ctime_ns = Nanoseconds(status.st_ctim)};
}

Result<FileIdentity> IdentityOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ErrnoStatus(errno, "look up", path);
  return IdentityFromStat(status);
}

std::string DescribeChange(const FileIdentity& before, const FileIdentity& after) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  if (before.device != after.device || before.inode != after.inode) {
    add("another file took its place");
  }
  if (before.size != after.size) add(fmt::format("{} bytes, were {}", after.size, before.size));
  if (before.mtime_ns != after.mtime_ns) add("its modification time (mtime) differs");
  if (before.ctime_ns != after.ctime_ns) add("its change time (ctime) differs");
  return text;
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

std::string PathIn(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
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

Status CheckIsFolder(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(path));
  if (kind == PathKind::kDirectory) return {};
  return NotFoundError(fmt::format("{}: expected a folder, found {}", Escape(path),
                                   kind == PathKind::kMissing ? "nothing"
                                   : kind == PathKind::kFile  ? "a file"
                                                              : "a device, socket or pipe"));
}

Result<PathLocation> PathLocation::Of(const std::string& path) {
  RESHARD_RETURN_IF_ERROR(CheckIsPath(path));
  RESHARD_ASSIGN_OR_RETURN(const fs::path resolved, Resolve(path));
  PathLocation location;
  for (fs::path ancestor = resolved;; ancestor = ancestor.parent_path()) {
    const auto found = IdentityOf(ancestor.string());
    if (found.ok()) {
      std::string rest = resolved.lexically_relative(ancestor).string();
      if (rest == ".") rest.clear();
      location.ancestors_.push_back({found->device, found->inode, std::move(rest)});
    } else if (found.status().code() != StatusCode::kNotFound) {
      return found.status();
    }
    if (ancestor == ancestor.parent_path()) return location;
  }
}

std::optional<std::string> PathLocation::From(const PathLocation& folder) const {
  if (folder.ancestors_.empty()) return std::nullopt;
  const Ancestor& base = folder.ancestors_.front();
  for (const Ancestor& ancestor : ancestors_) {
    if (ancestor.device != base.device || ancestor.inode != base.inode) continue;
    if (base.rest.empty()) return ancestor.rest;
    if (ancestor.rest == base.rest) return std::string();
    if (ancestor.rest.starts_with(base.rest + '/')) {
      return ancestor.rest.substr(base.rest.size() + 1);
    }
  }
  return std::nullopt;
}

Result<bool> IsInside(const std::string& path, const std::string& folder) {
  RESHARD_RETURN_IF_ERROR(IdentityOf(folder).status());
  RESHARD_ASSIGN_OR_RETURN(const PathLocation inner, PathLocation::Of(path));
  RESHARD_ASSIGN_OR_RETURN(const PathLocation outer, PathLocation::Of(folder));
  return inner.From(outer).has_value();
}

}  // namespace reshard
