#include "src/mindspore/output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/rank_pattern.h"
#include "src/os/output_directory.h"
#include "src/os/path_location.h"
#include "src/os/used_files.h"
#include "src/os/write_file.h"
#include "src/record/manifest_codec.h"

namespace reshard {
namespace {

bool IsOneOf(const std::string& path, const std::vector<FileIdentity>& files) {
  if (files.empty()) return false;
  const auto found = Storage::Of(path).Stat(path);
  return found.ok() && std::any_of(files.begin(), files.end(), [&](const FileIdentity& file) {
           return file.key() == found->key();
         });
}

// Returns the path, relative to `root`, of a file in its folder `folder`, or below, that is one of
// `files`; no value if there is none. Does not follow links to folders. A folder that cannot be
// listed counts as empty.
std::optional<std::string> FindIn(const std::string& root, const std::string& folder,
                                  const std::vector<FileIdentity>& files) {
  const auto entries = Storage::Of(root).List(PathIn(root, folder));
  if (!entries.ok()) return std::nullopt;
  for (const DirectoryEntry& entry : *entries) {
    std::string path = PathIn(folder, entry.name);
    if (IsOneOf(PathIn(root, path), files)) return path;
    if (!entry.is_directory || entry.is_link) continue;
    if (auto found = FindIn(root, path, files)) return found;
  }
  return std::nullopt;
}

// The folder of a checkpoint or target, and the files that it has or will have.
class Belongings {
 public:
  Belongings(const std::string& folder, const std::vector<std::string>& files)
      : folder_(folder), files_(files.begin(), files.end()) {
    const auto root = OutputDirectory::Open(folder);
    if (!root.ok()) return;
    const auto names = root->Names();
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      if (!IsManifestName(name)) continue;
      const auto bytes = root->ReadFile(name, kMaxManifestBytes);
      if (!bytes.ok()) continue;
      const auto manifest = ParseManifest(*bytes, name);
      if (!manifest.ok()) continue;
      for (const ManifestFile& file : manifest->files) files_.insert(file.path);
    }
  }

  // The role of `path` in the folder, in words; no value if it has none.
  std::optional<std::string> RoleOf(const std::string& path) const {
    if (files_.contains(path)) return "it is one of its files";
    const std::string first = path.substr(0, path.find('/'));
    if (first.starts_with("rank_")) {
      return fmt::format("it lies in {}, the folder of a rank", first);
    }
    return ReservedFor(path);
  }

  // Returns the path of a file that belongs to the folder and is one of `outputs`, if there is any.
  std::optional<std::string> Find(const std::vector<FileIdentity>& outputs) const {
    if (outputs.empty()) return std::nullopt;
    for (const std::string& file : files_) {
      if (IsOneOf(PathIn(folder_, file), outputs)) return file;
    }
    const auto entries = Storage::Of(folder_).List(folder_);
    if (!entries.ok()) return std::nullopt;
    for (const DirectoryEntry& entry : *entries) {
      if (!RoleOf(entry.name)) continue;
      if (IsOneOf(PathIn(folder_, entry.name), outputs)) return entry.name;
      if (!entry.is_directory) continue;
      if (auto found = FindIn(folder_, entry.name, outputs)) return found;
    }
    return std::nullopt;
  }

 private:
  const std::string& folder_;
  std::set<std::string> files_;
};

}  // namespace

Status CheckOutputsOutside(const std::string& folder, const std::vector<std::string>& files) {
  RESHARD_RETURN_IF_ERROR(CheckOutputs());
  const std::vector<UsedOutput> outputs = UsedOutputs();
  const auto place = PathLocation::Of(folder);
  if (outputs.empty() || folder.empty() || !place.ok()) return {};
  const Belongings belongings(folder, files);
  for (const UsedOutput& output : outputs) {
    std::optional<std::string> path;
    for (const std::string& name : {output.path, StagedName(output.path)}) {
      const auto location = PathLocation::Of(name);
      if (!location.ok()) continue;
      const auto relative = location->From(*place);
      if (!path && relative && belongings.RoleOf(*relative)) path = relative;
    }
    if (!path) path = belongings.Find(output.files);
    if (!path) continue;
    return RefuseOutput(InvalidArgumentError(
        fmt::format("{}: belongs to the checkpoint {}, as {}: {}; choose another file",
                    output.InWords(), Escape(folder), Escape(*path), *belongings.RoleOf(*path))));
  }
  return {};
}

}  // namespace reshard
