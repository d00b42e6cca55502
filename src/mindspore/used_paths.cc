#include "reshard/used_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "src/base/out_of_memory.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/mindspore/files_read.h"
#include "src/mindspore/rank_pattern.h"
#include "src/os/paths.h"
#include "src/record/manifest_codec.h"

namespace reshard {
namespace {

void AppendFolder(const std::string& folder, std::vector<std::string>& files) {
  const auto entries = ListDirectory(folder);
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    const bool counts = entry.name.ends_with(".ckpt") || entry.name.ends_with(".json");
    if (entry.is_regular && counts) files.push_back(PathIn(folder, entry.name));
  }
}

void AppendPattern(const std::string& pattern, std::vector<std::string>& files) {
  const auto listing = ListPattern(pattern);
  if (!listing.ok()) return;
  for (const RankListing& rank : listing->ranks) {
    const std::string folder = PathIn(listing->base, rank.folder);
    for (const Candidate& candidate : rank.candidates) {
      files.push_back(PathIn(folder, candidate.name));
    }
  }
}

namespace fs = std::filesystem;

// The name under which a file is written before it is put in place.
constexpr std::string_view kStagedEnd = ".reshard";

bool SameFile(const std::string& path, const FileIdentity& file) {
  const auto found = IdentityOf(path);
  return found.ok() && found->device == file.device && found->inode == file.inode;
}

// What a checkpoint has at `path`, relative to its folder, in words; nothing where it has nothing.
std::optional<std::string> RoleOf(std::string_view path) {
  const std::string_view first = path.substr(0, path.find('/'));
  if (first.starts_with("rank_")) return fmt::format("it lies in {}, the folder of a rank", first);
  return ReservedFor(path);
}

// Returns which file of the checkpoint in `folder` `file` is, by its path there; nothing where it
// is none.
std::optional<std::string> FindIn(const std::string& folder, const FileIdentity& file) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!RoleOf(name)) continue;
    if (SameFile(entry->path().string(), file)) return name;
    std::error_code none;  // what is no folder has nothing in it
    for (fs::recursive_directory_iterator inner(entry->path(), none), last; !none && inner != last;
         inner.increment(none)) {
      if (!SameFile(inner->path().string(), file)) continue;
      return inner->path().lexically_relative(folder).string();
    }
  }
  return std::nullopt;
}

Status CheckOutsideOf(const std::string& folder, const std::string& output,
                      const PathLocation& location, const std::optional<FileIdentity>& file) {
  const auto place = PathLocation::Of(folder);
  if (folder.empty() || !place.ok()) return {};
  std::optional<std::string> path = location.From(*place);
  if (!path || !RoleOf(*path)) path = file ? FindIn(folder, *file) : std::nullopt;
  if (!path) return {};
  return InvalidArgumentError(
      fmt::format("{}: belongs to the checkpoint {}, as {}: {}; choose another file",
                  Escape(output), Escape(folder), Escape(*path), *RoleOf(*path)));
}

Status CheckName(const std::string& output, const UsedPaths& used) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, KindOf(output));
  if (kind == PathKind::kOther) return {};  // a pipe or a device
  std::optional<FileIdentity> file;
  if (kind == PathKind::kFile) {
    RESHARD_ASSIGN_OR_RETURN(file, IdentityOf(output));
    for (const std::string& input : FilesRead(used)) {
      if (!SameFile(input, *file)) continue;
      return InvalidArgumentError(
          fmt::format("{}: would destroy {}, which is read; choose another file", Escape(output),
                      Escape(input)));
    }
  }
  RESHARD_ASSIGN_OR_RETURN(const PathLocation location, PathLocation::Of(output));
  for (const std::vector<std::string>* folders : {&used.checkpoints, &used.targets}) {
    for (const std::string& folder : *folders) {
      RESHARD_RETURN_IF_ERROR(CheckOutsideOf(folder, output, location, file));
    }
  }
  for (const std::string& other : used.outputs) {
    if (other.empty()) continue;
    for (const std::string& name : {other, other + std::string(kStagedEnd)}) {
      const auto place = PathLocation::Of(name);
      if (!place.ok() || location.From(*place) != "") continue;
      return InvalidArgumentError(fmt::format("{}: {} is written there; choose another file",
                                              Escape(output), Escape(other)));
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> FilesRead(const UsedPaths& used) {
  std::vector<std::string> files;
  for (const std::vector<std::string>* paths : {&used.checkpoints, &used.files}) {
    for (const std::string& path : *paths) {
      if (IsRankPattern(path)) {
        AppendPattern(path, files);
        continue;
      }
      const auto kind = KindOf(path);
      if (!kind.ok()) continue;
      if (*kind == PathKind::kFile) files.push_back(path);
      if (*kind == PathKind::kDirectory && paths == &used.files) AppendFolder(path, files);
    }
  }
  return files;
}

Status v0_1::CheckOutput(const std::string& output, const UsedPaths& used) {
  return CatchOutOfMemory([&]() -> Status {
    if (output.empty()) return {};  // writing it fails
    RESHARD_RETURN_IF_ERROR(CheckName(output, used));
    Status staged = CheckName(output + std::string(kStagedEnd), used);
    // A name that is too long for it is no matter of a file that is only appended to.
    return staged.code() == StatusCode::kInvalidArgument ? staged : Status();
  });
}

}  // namespace reshard
