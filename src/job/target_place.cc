#include "src/job/target_place.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/os/output_directory.h"
#include "src/record/part_record.h"

namespace reshard {
namespace {

constexpr const char* kProbe = ".reshard_probe";

// The folders of `files` and of their part records, and all folders above. Each path ends with a
// slash, except for the target folder's path, which is empty and comes first.
std::set<std::string> FoldersOf(const std::vector<ManifestFile>& files) {
  std::set<std::string> folders = {""};
  for (const ManifestFile& file : files) {
    for (const std::string& path : {file.path, RecordPath(file.path)}) {
      for (size_t slash = path.find('/'); slash != std::string::npos;
           slash = path.find('/', slash + 1)) {
        folders.insert(path.substr(0, slash + 1));
      }
    }
  }
  return folders;
}

// Removes the probe from the folders in `parent`.
Status RemoveProbesBelow(const OutputDirectory& parent) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> names, parent.Names());
  for (const std::string& name : names) {
    const auto folder = parent.OpenFolder(name);
    if (folder.ok()) RESHARD_RETURN_IF_ERROR(folder->RemoveFile(kProbe));
  }
  return {};
}

}  // namespace

Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<OutputDirectory::Entry> entry,
                           LookAt(root, file.path));
  return entry && entry->type == OutputDirectory::EntryType::kFile &&
         entry->identity.size() == file.stored_size();
}

bool ShareAny(const std::vector<ManifestFile>& a, const std::vector<ManifestFile>& b) {
  auto at_a = a.begin();
  auto at_b = b.begin();
  while (at_a != a.end() && at_b != b.end()) {
    if (at_a->path == at_b->path) return true;
    ++(at_a->path < at_b->path ? at_a : at_b);
  }
  return false;
}

void AddFolders(std::string_view path, std::set<std::string>& folders) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    folders.emplace(path.substr(0, slash));
  }
}

Status SyncFolders(const OutputDirectory& root, const std::set<std::string>& folders) {
  for (const std::string& folder : folders) {
    RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, folder + "/"));
    if (place) RESHARD_RETURN_IF_ERROR(place->folder.Sync());
  }
  return {};
}

Result<std::string> ReadFileAt(const OutputDirectory& root, const std::string& path,
                               uint64_t max_bytes) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, path));
  if (!place)
    return NotFoundError(fmt::format("{}/{}: no such file", Escape(root.path()), Escape(path)));
  return place->folder.ReadFile(place->name, max_bytes);
}

Status ProveMoves(const OutputDirectory& staging, const OutputDirectory& target,
                  const std::vector<ManifestFile>& files) {
  RESHARD_RETURN_IF_ERROR(staging.MakeFile(kProbe));
  std::optional<OutputDirectory> last;  // the place of the probe; no value: in `staging`
  for (const std::string& path : FoldersOf(files)) {
    RESHARD_ASSIGN_OR_RETURN(std::optional<TargetPlace> place, FindPlace(target, path + kProbe));
    if (!place) continue;
    const OutputDirectory& from = last ? *last : staging;
    if (Status moved = from.Rename(kProbe, place->folder, kProbe); !moved.ok()) {
      (void)from.RemoveFile(kProbe);
      return {moved.code(),
              fmt::format("{}: staged files cannot be moved there: {}; no file was replaced",
                          Escape(place->folder.path()), moved.message())};
    }
    last = std::move(place->folder);
  }
  return last->RemoveFile(kProbe);
}

Status RemoveProbes(const OutputDirectory& target) {
  RESHARD_RETURN_IF_ERROR(target.RemoveFile(kProbe));
  RESHARD_RETURN_IF_ERROR(RemoveProbesBelow(target));
  const auto records = target.OpenFolder(std::string(kRecordFolder));
  return records.ok() ? RemoveProbesBelow(*records) : Status();
}

}  // namespace reshard
