#include "src/mindspore/output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/rank_pattern.h"
#include "src/os/output_directory.h"
#include "src/os/used_files.h"
#include "src/os/write_file.h"
#include "src/record/manifest_codec.h"

namespace reshard {
namespace {

namespace fs = std::filesystem;

bool IsOneOf(const std::string& path, const std::vector<FileIdentity>& files) {
  if (files.empty()) return false;
  const auto found = IdentityOf(path);
  return found.ok() && std::any_of(files.begin(), files.end(), [&](const FileIdentity& file) {
           return file.device == found->device && file.inode == found->inode;
         });
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

  // What the folder has at `path`, relative to it, in words; nothing where it has nothing.
  std::optional<std::string> RoleOf(const std::string& path) const {
    if (files_.contains(path)) return "it is a file of it";
    const std::string first = path.substr(0, path.find('/'));
    if (first.starts_with("rank_")) {
      return fmt::format("it lies in {}, the folder of a rank", first);
    }
    return ReservedFor(path);
  }

  // Returns the path in the folder of what belongs to it and is one of `outputs`, if anything is.
  std::optional<std::string> Find(const std::vector<FileIdentity>& outputs) const {
    if (outputs.empty()) return std::nullopt;
    for (const std::string& file : files_) {
      if (IsOneOf(PathIn(folder_, file), outputs)) return file;
    }
    std::error_code error;
    for (fs::directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!RoleOf(name)) continue;
      if (IsOneOf(entry->path().string(), outputs)) return name;
      std::error_code none;  // what is no folder has nothing in it
      for (fs::recursive_directory_iterator inner(entry->path(), none), last;
           !none && inner != last; inner.increment(none)) {
        if (!IsOneOf(inner->path().string(), outputs)) continue;
        return inner->path().lexically_relative(folder_).string();
      }
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
