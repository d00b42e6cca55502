// What lies in a folder, to compare it as a whole.
#ifndef RESHARD_TESTS_SUPPORT_FOLDER_CONTENTS_H_
#define RESHARD_TESTS_SUPPORT_FOLDER_CONTENTS_H_

#include <filesystem>
#include <map>
#include <string>

namespace reshard {

// Bytes by path, relative to the folder.
using FolderContents = std::map<std::string, std::string>;

// Returns the files below `folder`, none where there is no folder; of links and the like their kind
// in place of bytes. Without its origin.jsonl, which has a line more for each run. Throws.
FolderContents ReadFolder(const std::filesystem::path& folder);

// As ReadFolder, without manifests and what belongs to them: what a conversion is for.
FolderContents ReadOutputs(const std::filesystem::path& folder);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_FOLDER_CONTENTS_H_
