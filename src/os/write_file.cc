#include "src/os/write_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/output_directory.h"

namespace reshard {
namespace {

struct FilePlace {
  std::string folder;
  std::string name;
};

Result<FilePlace> FilePlaceOf(const std::string& path) {
  const std::filesystem::path whole(path);
  FilePlace place{whole.has_parent_path() ? whole.parent_path().string() : ".",
                  whole.filename().string()};
  if (!place.name.empty() && place.name != "." && place.name != "..") return place;
  return InvalidArgumentError(fmt::format("{}: is no name of a file", path));
}

Status CheckNameFree(const OutputDirectory& folder, const FilePlace& place, const std::string& path,
                     bool replace) {
  RESHARD_ASSIGN_OR_RETURN(const auto entry, folder.Look(place.name));
  if (!entry || (replace && entry->type == OutputDirectory::EntryType::kFile)) return {};
  return AlreadyExistsError(
      fmt::format("{}: exists; choose another name or pass --force to replace a file", path));
}

}  // namespace

Status CheckWritable(const std::string& path, bool replace) {
  RESHARD_ASSIGN_OR_RETURN(const FilePlace place, FilePlaceOf(path));
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder, OutputDirectory::Open(place.folder));
  return CheckNameFree(folder, place, path, replace);
}

Status WriteFile(const std::string& path, std::string_view bytes, bool replace) {
  RESHARD_ASSIGN_OR_RETURN(const FilePlace place, FilePlaceOf(path));
  std::vector<std::string> made;
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder,
                           OutputDirectory::Create(place.folder, made));
  RESHARD_RETURN_IF_ERROR(CheckNameFree(folder, place, path, replace));
  const std::string staged = place.name + ".reshard";
  if (Status status = folder.WriteFile(staged, bytes); !status.ok()) {
    if (status.code() == StatusCode::kAlreadyExists) {
      return AlreadyExistsError(fmt::format(
          "{}.reshard: exists; another run is writing {}, or one was killed: then remove it",
          Escape(path), Escape(path)));
    }
    (void)folder.RemoveFile(staged);
    return status;
  }
  if (Status status = folder.Rename(staged, folder, place.name); !status.ok()) {
    (void)folder.RemoveFile(staged);
    return status;
  }
  return folder.Sync();
}

}  // namespace reshard
