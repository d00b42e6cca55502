#include "src/full/full_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "format/container_table/container_table.h"
#include "format/torch_zip/torch_zip_container.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"

namespace reshard {
namespace {

// Returns the index `own`, or the only one. Errors: kMismatch for several others.
Result<std::string> IndexAmong(const std::string& path, const std::vector<std::string>& indexes,
                               std::string_view own) {
  const auto found = std::find(indexes.begin(), indexes.end(), own);
  if (found != indexes.end()) return *found;
  if (indexes.size() == 1) return indexes.front();
  return MismatchError(fmt::format("{}: {} indexes: {}; expected one, or {}", Escape(path),
                                   indexes.size(), FirstOf(indexes), own));
}

}  // namespace

bool IsFolderIndex(std::string_view name) {
  return name == kParamNameMap || IsHuggingFaceIndex(name);
}

Result<std::optional<FullFolder>> FindFullFolder(const std::string& path) {
  const Storage& storage = Storage::Of(path);
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(path));
  for (const DirectoryEntry& entry : entries) {
    const bool counts = IsFolderIndex(entry.name) || ContainerNamed(entry.name) == &kFullContainer;
    if (entry.is_directory || !counts) continue;
    RESHARD_RETURN_IF_ERROR(storage.KeepFromOutputs(fmt::format("{}/{}", path, entry.name)));
  }
  return FullFolderOf(path, entries);
}

Result<std::optional<FullFolder>> FullFolderOf(const std::string& path,
                                               const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> indexes;
  std::vector<std::string> torch_indexes;
  std::vector<std::string> files;
  std::vector<std::string> checkpoints;
  bool has_map = false;
  bool has_folders = false;
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_directory) has_folders = has_folders || entry.name.starts_with("rank_");
    if (entry.is_directory || entry.name.starts_with('.')) continue;
    if (entry.name == kParamNameMap) has_map = true;
    if (entry.name.ends_with(kSafetensorsIndexEnding)) indexes.push_back(entry.name);
    if (entry.name.ends_with(kTorchIndexEnding)) torch_indexes.push_back(entry.name);
    if (ContainerNamed(entry.name) == &kFullContainer) files.push_back(entry.name);
    if (ContainerNamed(entry.name) != nullptr) checkpoints.push_back(entry.name);
  }
  if (has_map) {
    return std::optional(
        FullFolder{FolderFamily::kUnified, std::string(kParamNameMap), {}, std::move(checkpoints)});
  }
  const bool has_model = std::find(files.begin(), files.end(), kHuggingFaceFile) != files.end();
  FullFolder folder{FolderFamily::kHuggingFace, {}, {}, std::move(checkpoints)};
  if (!indexes.empty()) {
    RESHARD_ASSIGN_OR_RETURN(folder.index, IndexAmong(path, indexes, kHuggingFaceIndex));
    return std::optional(std::move(folder));
  }
  if (files.empty() && !torch_indexes.empty()) {
    if (has_folders) {
      return MismatchError(fmt::format(
          "{}: holds an index of PyTorch's files ({}), and beside it folders rank_N of another "
          "checkpoint; move one of the two into a folder of its own",
          Escape(path), FirstOf(torch_indexes)));
    }
    RESHARD_ASSIGN_OR_RETURN(folder.index, IndexAmong(path, torch_indexes, kTorchIndex));
    folder.container = &kTorchZipContainer;
    return std::optional(std::move(folder));
  }
  if (has_folders || (files.size() != 1 && !has_model)) return std::optional<FullFolder>();
  folder.lone = has_model ? std::string(kHuggingFaceFile) : files.front();
  return std::optional(std::move(folder));
}

}  // namespace reshard
