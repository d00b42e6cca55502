#include "tests/support/folder_contents.h"

#include "tests/support/temporary_folder.h"

namespace reshard {

namespace fs = std::filesystem;

FolderContents ReadFolder(const fs::path& folder) {
  FolderContents found;
  if (!fs::exists(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    const bool plain = entry.is_regular_file() && !entry.is_symlink();
    found[entry.path().lexically_relative(folder).string()] =
        plain ? ReadFile(entry.path()) : "not a regular file";
  }
  return found;
}

FolderContents ReadOutputs(const fs::path& folder) {
  FolderContents found = ReadFolder(folder);
  std::erase_if(found, [](const auto& file) {
    return file.first.starts_with("manifest") && file.first.ends_with(".json");
  });
  return found;
}

}  // namespace reshard
