#include "src/frontend/mount_place.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/os/mount_point.h"
#include "src/os/path_location.h"

namespace reshard {
namespace {

// The paths that a source is read from; of a pattern the folder above its first {rank}.
std::vector<std::string> PathsOf(const SourceSpec& source) {
  std::vector<std::string> paths;
  for (const auto& [rank, path] : source.files) paths.push_back(path);
  if (source.path.empty()) return paths;
  const size_t rank = source.path.find("{rank}");
  if (rank == std::string::npos) {
    paths.push_back(source.path);
  } else {
    paths.push_back(FolderOf(source.path.substr(0, rank)));
  }
  return paths;
}

Status CheckNotMounted(const std::string& folder) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<std::string> type, MountedOn(folder));
  if (!type) return {};
  if (*type == kMountType) {
    return AlreadyExistsError(fmt::format(
        "{}: a target is mounted there, or was by a process that was killed; `reshard unmount {}` "
        "ends it",
        Escape(folder), Escape(folder)));
  }
  return AlreadyExistsError(
      fmt::format("{}: a file system ({}) is mounted there; choose an empty folder", Escape(folder),
                  Escape(*type)));
}

}  // namespace

Status CheckMountPlace(const std::string& folder, const SourceSpec& source) {
  RESHARD_RETURN_IF_ERROR(CheckNotMounted(folder));
  const Storage& storage = Storage::Of(folder);
  RESHARD_ASSIGN_OR_RETURN(const PathLocation place, storage.Locate(folder));
  for (const std::string& path : PathsOf(source)) {
    RESHARD_ASSIGN_OR_RETURN(const PathLocation read, Storage::Of(path).Locate(path));
    if (place.From(read)) {
      return InvalidArgumentError(
          fmt::format("{}: the mount point is, or lies in, the source {}; choose a folder outside",
                      Escape(folder), Escape(path)));
    }
    if (read.From(place)) {
      return InvalidArgumentError(fmt::format(
          "{}: the source {} lies there, and the mount would hide it; choose another folder",
          Escape(folder), Escape(path)));
    }
  }
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, storage.KindOf(folder));
  if (kind == PathKind::kMissing) {
    return NotFoundError(fmt::format("{}: does not exist; make an empty folder", Escape(folder)));
  }
  if (kind != PathKind::kDirectory) {
    return AlreadyExistsError(
        fmt::format("{}: is no folder; a target is mounted on an empty one", Escape(folder)));
  }
  RESHARD_ASSIGN_OR_RETURN(const auto entries, storage.List(folder));
  if (entries.empty()) return {};
  return AlreadyExistsError(fmt::format(
      "{}: is not empty, and the mount would hide its content, such as {}; choose an empty folder",
      Escape(folder), Quote(entries.front().name)));
}

Status EndMount(const std::string& folder) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<std::string> type, MountedOn(folder));
  if (type && *type == kMountType) return Unmount(folder);
  return InvalidArgumentError(
      fmt::format("{}: no target is mounted there; found {}", Escape(folder),
                  type ? "a file system of type " + Escape(*type) : std::string("no mount")));
}

Result<int> ServeInBackground(const std::function<int(const std::function<void()>& ready)>& serve) {
  return RunInBackground(serve);
}

}  // namespace reshard
