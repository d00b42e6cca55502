#include "src/os/output_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "reshard/parameters.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/path_location.h"
#include "src/os/paths.h"
#include "src/os/system_call.h"

namespace reshard {
namespace {

// Pieces of a file up to so many bytes are written in one call.
constexpr size_t kWriteTogether = size_t{256} << 10;

using EntryType = OutputDirectory::EntryType;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
// reshard's own folders are less deep. The limit bounds stack and descriptors for trees that other
// programs have put there.
constexpr int kMaxDepth = 16;

EntryType TypeOf(mode_t mode) {
  if (S_ISREG(mode)) return EntryType::kFile;
  if (S_ISDIR(mode)) return EntryType::kFolder;
  if (S_ISLNK(mode)) return EntryType::kLink;
  return EntryType::kOther;
}

Status InTheWay(const std::string& path, std::string_view expected, EntryType found) {
  return AlreadyExistsError(
      fmt::format("{}: expected {}, found {}; remove it or choose another target folder",
                  Escape(path), expected, DescribeType(found)));
}

// Makes the entry of a new folder durable in the folder above it.
Status SyncAbove(const std::string& path) {
  const std::string above = FolderOf(path);
  const FileDescriptor fd(Uninterrupted([&] { return open(above.c_str(), kFolderFlags); }));
  if (!fd.valid()) return ErrnoStatus(errno, "open", above);
  if (fsync(fd.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, "flush", above);
  return {};
}

// Writes all `bytes`, at `offset` of the file.
Status PutAt(const FileDescriptor& file, uint64_t offset, std::string_view bytes,
             const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = Uninterrupted(
        [&] { return pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (written < 0) return ErrnoStatus(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

using Entry = OutputDirectory::Entry;

// Opens the folders on the way to `path` with `open(folder, name)`, and returns the last one.
template <typename OpenFolder>
Result<TargetPlace> Walk(const OutputDirectory& root, const std::string& path, OpenFolder open) {
  std::optional<OutputDirectory> folder;
  size_t begin = 0;
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', begin)) {
    RESHARD_ASSIGN_OR_RETURN(folder,
                             open(folder ? *folder : root, path.substr(begin, slash - begin)));
    begin = slash + 1;
  }
  if (!folder) {
    RESHARD_ASSIGN_OR_RETURN(folder, root.Again());
  }
  return TargetPlace{.folder = *std::move(folder), .name = path.substr(begin)};
}

}  // namespace

std::string_view DescribeType(OutputDirectory::EntryType type) {
  switch (type) {
    case EntryType::kFile:
      return "a file";
    case EntryType::kFolder:
      return "a folder";
    case EntryType::kLink:
      return "a symbolic link";
    case EntryType::kOther:
      return "a device, socket or pipe";
  }
  return "something else";
}

OutputDirectory::OutputDirectory(FileDescriptor fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)) {}

Result<OutputDirectory> OutputDirectory::Create(const std::string& path,
                                                std::vector<std::string>& made) {
  if (path.empty()) return InvalidArgumentError("the target folder's path is empty");
  RESHARD_RETURN_IF_ERROR(CheckIsPath(path));
  for (size_t end = 0; end < path.size();) {
    end = std::min(path.find('/', end + 1), path.size());
    const std::string folder = path.substr(0, end);
    if (folder.back() == '/') continue;
    if (mkdir(folder.c_str(), 0777) == 0) {
      made.push_back(folder);
      RESHARD_RETURN_IF_ERROR(SyncAbove(folder));
      continue;
    }
    // Not only EEXIST: some file systems say EACCES or EROFS of a folder that exists.
    const int error = errno;
    struct stat found {};
    if (stat(folder.c_str(), &found) != 0) return ErrnoStatus(error, "make the folder", folder);
    if (!S_ISDIR(found.st_mode)) return InTheWay(folder, "a folder", TypeOf(found.st_mode));
  }
  return Open(path);
}

Result<OutputDirectory> OutputDirectory::Open(const std::string& path) {
  FileDescriptor fd(Uninterrupted([&] { return open(path.c_str(), kFolderFlags); }));
  if (fd.valid()) return OutputDirectory(std::move(fd), path);
  const int error = errno;
  struct stat found {};
  if (error == ENOTDIR && stat(path.c_str(), &found) == 0) {
    return InTheWay(path, "a folder", TypeOf(found.st_mode));
  }
  return ErrnoStatus(error, "open the folder", path);
}

void OutputDirectory::RemoveMade(const std::vector<std::string>& made) {
  for (size_t i = made.size(); i-- > 0;) rmdir(made[i].c_str());
}

std::string OutputDirectory::PathOf(std::string_view name) const {
  assert(name.find('/') == std::string_view::npos);
  return fmt::format("{}{}{}", path_, path_.back() == '/' ? "" : "/", name);
}

Result<std::optional<OutputDirectory::Entry>> OutputDirectory::Look(const std::string& name) const {
  struct stat found {};
  if (fstatat(fd(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    // No file system has a name that is too long for it.
    if (errno == ENOENT || errno == ENAMETOOLONG) return std::optional<Entry>();
    return ErrnoStatus(errno, "look up", PathOf(name));
  }
  return std::optional(Entry{.type = TypeOf(found.st_mode), .identity = IdentityFromStat(found)});
}

Result<std::vector<std::string>> OutputDirectory::Names() const {
  // A new descriptor, because the position in the folder belongs to the open file.
  const int own = Uninterrupted([&] { return openat(fd(), ".", kFolderFlags); });
  if (own < 0) return ErrnoStatus(errno, "list the folder", path_);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(own), closedir);  // owns it
  if (stream == nullptr) {
    const int error = errno;
    close(own);
    return ErrnoStatus(error, "list the folder", path_);
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return ErrnoStatus(errno, "list the folder", path_);
  std::sort(names.begin(), names.end());
  return names;
}

Result<OutputDirectory> OutputDirectory::Again() const {
  FileDescriptor same(Uninterrupted([&] { return openat(fd(), ".", kFolderFlags); }));
  if (!same.valid()) return ErrnoStatus(errno, "open the folder", path_);
  return OutputDirectory(std::move(same), path_);
}

Result<OutputDirectory> OutputDirectory::OpenFolder(const std::string& name) const {
  FileDescriptor folder(
      Uninterrupted([&] { return openat(fd(), name.c_str(), kFolderFlags | O_NOFOLLOW); }));
  if (folder.valid()) return OutputDirectory(std::move(folder), PathOf(name));
  const int error = errno;
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Entry> entry, Look(name));
  if (entry && entry->type != EntryType::kFolder) {
    return InTheWay(PathOf(name), "a folder", entry->type);
  }
  return ErrnoStatus(error == ENAMETOOLONG ? ENOENT : error, "open the folder", PathOf(name));
}

Result<OutputDirectory> OutputDirectory::MakeFolder(const std::string& name) const {
  if (mkdirat(fd(), name.c_str(), 0777) != 0 && errno != EEXIST) {
    const int error = errno;
    const auto entry = Look(name);  // as in Create
    if (!entry.ok() || !*entry) return ErrnoStatus(error, "make the folder", PathOf(name));
  }
  return OpenFolder(name);
}

FileDescriptor OutputDirectory::OpenAt(const std::string& name, int flags) const {
  return FileDescriptor(Uninterrupted(
      [&] { return openat(fd(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0666); }));
}

Result<std::string> OutputDirectory::ReadFile(const std::string& name, uint64_t max_bytes) const {
  const std::string path = PathOf(name);
  const FileDescriptor file = OpenAt(name, O_RDONLY | O_NONBLOCK);
  if (!file.valid()) {
    if (errno != ELOOP) return ErrnoStatus(errno, "open", path);
    return InTheWay(path, "a file", EntryType::kLink);
  }
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return ErrnoStatus(errno, "look up", path);
  if (!S_ISREG(found.st_mode)) return InTheWay(path, "a file", TypeOf(found.st_mode));
  const auto size = static_cast<uint64_t>(found.st_size);
  if (size > max_bytes) {
    return CorruptError(fmt::format("{}: {}, but such a file has at most {}", Escape(path),
                                    FormatBytes(size), FormatBytes(max_bytes)));
  }
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        Uninterrupted([&] { return read(file.get(), bytes.data() + done, size - done); });
    if (got < 0) return ErrnoStatus(errno, "read", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Status OutputDirectory::WriteFile(const std::string& name, std::string_view bytes) const {
  return WriteFile(name, [bytes](const ByteSink& sink) { return sink(bytes); });
}

Status OutputDirectory::Overwrite(const std::string& name, uint64_t offset,
                                  std::string_view bytes) const {
  const std::string path = PathOf(name);
  FileDescriptor file = OpenAt(name, O_WRONLY);
  if (!file.valid() && errno == ENOENT) return NotFoundError(Escape(path) + ": no such file");
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  RESHARD_RETURN_IF_ERROR(PutAt(file, offset, bytes, path));
  if (fsync(file.get()) != 0) return ErrnoStatus(errno, "flush", path);
  return file.Close(path);
}

Status OutputDirectory::WriteOver(const std::string& name, std::string_view bytes) const {
  const std::string path = PathOf(name);
  // O_NONBLOCK: a pipe in its place does not hold the caller up.
  FileDescriptor file = OpenAt(name, O_WRONLY | O_CREAT | O_NONBLOCK);
  if (!file.valid()) return ErrnoStatus(errno, "open", path);
  RESHARD_RETURN_IF_ERROR(PutAt(file, 0, bytes, path));
  return file.Close(path);
}

Status OutputDirectory::WriteFile(const std::string& name, const ByteSource& source) const {
  const std::string path = PathOf(name);
  FileDescriptor file = OpenAt(name, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.valid()) {
    if (errno == EEXIST) return AlreadyExistsError(Escape(path) + ": exists already");
    return ErrnoStatus(errno, "make", path);
  }
  const auto put = [&](std::string_view bytes) -> Status {
    while (!bytes.empty()) {
      const ssize_t written =
          Uninterrupted([&] { return write(file.get(), bytes.data(), bytes.size()); });
      if (written < 0) return ErrnoStatus(errno, "write", path);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return {};
  };
  std::string waiting;  // small pieces, to be written together
  const ByteSink gather = [&](std::string_view bytes) -> Status {
    if (waiting.size() + bytes.size() > kWriteTogether) {
      RESHARD_RETURN_IF_ERROR(put(waiting));
      waiting.clear();
    }
    if (bytes.size() > kWriteTogether) return put(bytes);
    waiting += bytes;
    return {};
  };
  RESHARD_RETURN_IF_ERROR(source(gather));
  RESHARD_RETURN_IF_ERROR(put(waiting));
  if (fsync(file.get()) != 0) return ErrnoStatus(errno, "flush", path);
  return file.Close(path);
}

Status OutputDirectory::MakeFile(const std::string& name) const {
  FileDescriptor file = OpenAt(name, O_WRONLY | O_CREAT);
  if (!file.valid()) return ErrnoStatus(errno, "make", PathOf(name));
  return file.Close(PathOf(name));
}

Status OutputDirectory::Rename(const std::string& name, const OutputDirectory& to,
                               const std::string& to_name) const {
  if (renameat(fd(), name.c_str(), to.fd(), to_name.c_str()) != 0) {
    const int error = errno;
    return ErrnoStatus(error, fmt::format("move {} here", Escape(PathOf(name))),
                       to.PathOf(to_name));
  }
  return {};
}

bool OutputDirectory::CanMoveTo(const OutputDirectory& to) const {
  // The kernel compares the mounts before it looks for the file, which is none.
  constexpr const char* kNoFile = ".reshard_no_file";
  return renameat(fd(), kNoFile, to.fd(), kNoFile) == 0 || errno != EXDEV;
}

Status OutputDirectory::RemoveFile(const std::string& name) const {
  if (unlinkat(fd(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, "remove", PathOf(name));
  }
  return {};
}

Result<bool> OutputDirectory::RemoveFolder(const std::string& name) const {
  if (unlinkat(fd(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  return ErrnoStatus(errno, "remove the folder", PathOf(name));
}

Status OutputDirectory::RemoveTree(const std::string& name) const { return RemoveTree(name, 0); }

Status OutputDirectory::RemoveTree(const std::string& name, int depth) const {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<Entry> entry, Look(name));
  if (!entry) return {};
  if (entry->type != EntryType::kFolder) return RemoveFile(name);
  if (depth == kMaxDepth) {
    return IoError(fmt::format("{}: folders {} deep are not reshard's; remove them",
                               Escape(PathOf(name)), kMaxDepth));
  }
  {
    RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder, OpenFolder(name));
    RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, folder.Names());
    for (const std::string& inner : names) {
      RESHARD_RETURN_IF_ERROR(folder.RemoveTree(inner, depth + 1));
    }
  }
  RESHARD_ASSIGN_OR_RETURN(const bool gone, RemoveFolder(name));
  if (!gone) return IoError(Escape(PathOf(name)) + ": cannot remove: files keep appearing in it");
  return {};
}

Status OutputDirectory::Sync() const {
  // EINVAL: a file system whose folders cannot be flushed, or need no flush.
  if (fsync(fd()) != 0 && errno != EINVAL) return ErrnoStatus(errno, "flush the folder", path_);
  return {};
}

Status OutputDirectory::CheckWritable() const {
  if (faccessat(fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return ErrnoStatus(errno, "write to the folder", path_);
  }
  return {};
}

Result<std::optional<uint64_t>> OutputDirectory::FreeBytes() const {
  struct statvfs system {};
  if (Uninterrupted([&] { return fstatvfs(fd(), &system); }) != 0) {
    return ErrnoStatus(errno, "ask for the free space", path_);
  }
  // As in ramfs, and of FUSE file systems that do not answer.
  if (system.f_blocks == 0) return std::optional<uint64_t>();
  return std::optional(uint64_t{system.f_bavail} * system.f_frsize);
}

Result<std::optional<TargetPlace>> FindPlace(const OutputDirectory& root, const std::string& path) {
  auto place = Walk(root, path, [](const OutputDirectory& folder, const std::string& name) {
    return folder.OpenFolder(name);
  });
  if (place.ok()) return std::optional(std::move(*place));
  if (place.status().code() == StatusCode::kNotFound) return std::optional<TargetPlace>();
  return place.status();
}

Result<TargetPlace> MakePlace(const OutputDirectory& root, const std::string& path) {
  return Walk(root, path, [](const OutputDirectory& folder, const std::string& name) {
    return folder.MakeFolder(name);
  });
}

Result<std::optional<Entry>> LookAt(const OutputDirectory& root, const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, path));
  if (!place) return std::optional<Entry>();
  return place->folder.Look(place->name);
}

}  // namespace reshard
