#include "src/job/target_place.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {

Result<bool> IsWhole(const OutputDirectory& root, const ManifestFile& file) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<OutputDirectory::Entry> entry,
                           LookAt(root, file.path));
  return entry && entry->type == OutputDirectory::EntryType::kFile && entry->size == file.size;
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
  return root.Sync();
}

Result<std::string> ReadFileAt(const OutputDirectory& root, const std::string& path,
                               uint64_t max_bytes) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<TargetPlace> place, FindPlace(root, path));
  if (!place)
    return NotFoundError(fmt::format("{}/{}: no such file", Escape(root.path()), Escape(path)));
  return place->folder.ReadFile(place->name, max_bytes);
}

}  // namespace reshard
