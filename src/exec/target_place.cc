#include "src/exec/target_place.h"

#include <optional>
#include <set>

#include "src/base/status_macros.h"

namespace reshard {

Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<OutputDirectory::Entry> entry,
                           LookAt(root, file.path));
  return entry && entry->type == OutputDirectory::EntryType::kFile && entry->size == file.size;
}

Status SyncFolders(const OutputDirectory& root, const std::vector<ManifestFile>& files) {
  std::set<std::string> folders;
  for (const ManifestFile& file : files) {
    for (size_t slash = file.path.find('/'); slash != std::string::npos;
         slash = file.path.find('/', slash + 1)) {
      folders.insert(file.path.substr(0, slash));
    }
  }
  for (const std::string& folder : folders) {
    RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, folder + "/"));
    if (place) RESHARD_RETURN_IF_ERROR(place->folder.Sync());
  }
  return root.Sync();
}

}  // namespace reshard
