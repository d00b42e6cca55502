#include "tests/support/folder_contents.h"

#include "tests/support/temporary_folder.h"

namespace reshard {

namespace fs = std::filesystem;

FolderContents ReadFolder(const fs::path& folder) {
  FolderContents found;
  if (!fs::exists(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    if (entry.path() == folder / "origin.jsonl") continue;
    const bool plain = entry.is_regular_file() && !entry.is_symlink();
    found[entry.path().lexically_relative(folder).string()] =
        plain ? ReadFile(entry.path()) : "not a regular file";
  }
  return found;
}

FolderContents ReadOutputs(const fs::path& folder) {
  FolderContents found = ReadFolder(folder);
  std::erase_if(found, [](const auto& file) {
    const std::string& path = file.first;
    return (path.starts_with("manifest") && path.ends_with(".json")) ||
           (path.starts_with("checksums") && path.ends_with(".xxh128")) ||
           path.starts_with("part_records/");
  });
  return found;
}

}  // namespace reshard
