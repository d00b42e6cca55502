#include "src/os/write_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/output_directory.h"
#include "src/os/path_location.h"
#include "src/os/used_files.h"

namespace reshard {
namespace {

// The place of a file.
struct FilePlace {
  std::string folder;
  std::string name;
};

Result<FilePlace> FilePlaceOf(const std::string& path) {
  FilePlace place{FolderOf(path), std::filesystem::path(path).filename().string()};
  if (!place.name.empty() && place.name != "." && place.name != "..") return place;
  return InvalidArgumentError(fmt::format("{}: is not the name of a file", Quote(path)));
}

// Of `name` in `folder`, which `path` stands for.
Status CheckFree(const OutputDirectory& folder, const std::string& name, const std::string& path,
                 bool replace) {
  RESHARD_ASSIGN_OR_RETURN(const auto entry, folder.Look(name));
  if (!entry) return {};
  if (entry->type != OutputDirectory::EntryType::kFile) {
    return AlreadyExistsError(
        fmt::format("{}: is {}; choose another name", Escape(path), DescribeType(entry->type)));
  }
  if (replace) return {};
  return AlreadyExistsError(fmt::format(
      "{}: exists; choose another name or pass `force` to replace a file", Escape(path)));
}

// Writes `bytes` to a place that CheckFree has accepted.
Status WriteStaged(const OutputDirectory& folder, const std::string& name, const std::string& path,
                   std::string_view bytes) {
  const std::string staged = StagedName(name);
  Status status = folder.WriteFile(staged, bytes);
  if (status.code() == StatusCode::kAlreadyExists) {
    return AlreadyExistsError(
        fmt::format("{}: exists; another run is writing {}, or was killed: if so, remove this file",
                    Escape(StagedName(path)), Escape(path)));
  }
  if (status.ok()) status = folder.Rename(staged, folder, name);
  if (!status.ok()) {
    (void)folder.RemoveFile(staged);
    return status;
  }
  return folder.Sync();
}

// A lost attempt means that another run has just ended.
constexpr int kNameAttempts = 100;

// Makes the staged file, empty, and locks it.
Result<FileLock> ClaimStaged(const OutputDirectory& folder, const std::string& name) {
  const std::string staged = StagedName(name);
  for (int i = 0; i < kNameAttempts; ++i) {
    RESHARD_ASSIGN_OR_RETURN(FileLock lock, FileLock::Open(folder, staged));
    RESHARD_ASSIGN_OR_RETURN(const bool had, lock.Try(FileLock::Mode::kExclusive));
    if (!had) {
      return AlreadyExistsError(
          fmt::format("{}: another run is writing it", Escape(folder.PathOf(name))));
    }
    if (!lock.IsNamed(folder, staged)) continue;
    RESHARD_ASSIGN_OR_RETURN(const auto entry, folder.Look(staged));
    if (entry && entry->identity.size() == 0) return lock;
    RESHARD_RETURN_IF_ERROR(folder.RemoveFile(staged));  // a run was killed
  }
  return IoError(
      fmt::format("{}: another program keeps replacing it", Escape(folder.PathOf(staged))));
}

}  // namespace

std::string StagedName(const std::string& path) { return path + ".reshard"; }

Status CheckWritable(const std::string& path, bool replace) {
  RESHARD_ASSIGN_OR_RETURN(const FilePlace place, FilePlaceOf(path));
  RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder, OutputDirectory::Open(place.folder));
  return CheckFree(folder, place.name, path, replace);
}

Status WriteFile(const std::string& path, std::string_view bytes, bool replace) {
  RESHARD_RETURN_IF_ERROR(CheckOutputs());
  RESHARD_ASSIGN_OR_RETURN(const FilePlace place, FilePlaceOf(path));
  std::vector<std::string> made;
  const auto write = [&]() -> Status {
    RESHARD_ASSIGN_OR_RETURN(const OutputDirectory folder,
                             OutputDirectory::Create(place.folder, made));
    RESHARD_RETURN_IF_ERROR(CheckFree(folder, place.name, path, replace));
    return WriteStaged(folder, place.name, path, bytes);
  };
  Status status = write();
  if (!status.ok()) OutputDirectory::RemoveMade(made);
  return status;
}

SingleOutput::SingleOutput(OutputDirectory folder, std::vector<std::string> made, std::string name,
                           FileLock lock)
    : folder_(std::move(folder)),
      made_(std::move(made)),
      name_(std::move(name)),
      lock_(std::move(lock)) {}

Result<SingleOutput> SingleOutput::Claim(const std::string& path, bool replace) {
  RESHARD_RETURN_IF_ERROR(CheckOutputs());
  RESHARD_ASSIGN_OR_RETURN(FilePlace place, FilePlaceOf(path));
  std::vector<std::string> made;
  const auto claim = [&]() -> Result<SingleOutput> {
    RESHARD_ASSIGN_OR_RETURN(OutputDirectory folder, OutputDirectory::Create(place.folder, made));
    RESHARD_RETURN_IF_ERROR(CheckFree(folder, place.name, path, replace));
    RESHARD_ASSIGN_OR_RETURN(FileLock lock, ClaimStaged(folder, place.name));
    return SingleOutput(std::move(folder), made, std::move(place.name), std::move(lock));
  };
  auto claimed = claim();
  if (!claimed.ok()) OutputDirectory::RemoveMade(made);
  return claimed;
}

SingleOutput::~SingleOutput() {
  if (published_ || folder_.fd() < 0) return;  // or moved from
  // A destructor has no caller to report a failure to. The next run for this place clears the
  // leftovers.
  static_cast<void>(folder_.RemoveFile(StagedName(name_)));
  OutputDirectory::RemoveMade(made_);
}

Result<StagedFile> SingleOutput::Create(uint64_t size, const WriteOptions& options) const {
  return StagedFile::OpenPart(folder_, StagedName(name_), size, {0, size}, options);
}

Status SingleOutput::Publish() {
  RESHARD_RETURN_IF_ERROR(folder_.Rename(StagedName(name_), folder_, name_));
  published_ = true;
  return folder_.Sync();
}

}  // namespace reshard
