#include "src/convert/reader_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "format/container_table/container_table.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/full/full_folder.h"
#include "src/io/storage.h"
#include "src/mindspore/rank_folder.h"
#include "src/mindspore/rank_pattern.h"
#include "src/mindspore/resume_files.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"
#include "src/record/origin.h"

namespace reshard {
namespace {

// As Storage::List, but empty if there is no folder.
Result<std::vector<DirectoryEntry>> ListIfThere(const std::string& path) {
  auto entries = Storage::Of(path).List(path);
  if (entries.status().code() == StatusCode::kNotFound) return std::vector<DirectoryEntry>();
  if (entries.ok() || entries.status().system_error() != ENOTDIR) return entries;
  return std::vector<DirectoryEntry>();  // the job reports an entry in its way
}

// Whether publication of the set removes all entries of a folder in the target.
bool IsEmptied(const SetInFolder& set, const std::string& folder) {
  const auto entries = ListIfThere(PathIn(set.folder, folder));
  return entries.ok() && !entries->empty() &&
         std::all_of(entries->begin(), entries->end(), [&](const DirectoryEntry& entry) {
           return set.gone.contains(folder + '/' + entry.name);
         });
}

// The entries of the folder itself, as they will be.
Result<std::vector<DirectoryEntry>> EntriesToCome(const SetInFolder& set) {
  RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, ListIfThere(set.folder));
  std::erase_if(entries, [&](const DirectoryEntry& entry) {
    if (set.files.contains(entry.name) || set.gone.contains(entry.name)) return true;
    return entry.is_directory && entry.name.starts_with("rank_") && IsEmptied(set, entry.name);
  });
  for (const std::string& file : set.files) {
    const size_t slash = file.find('/');
    DirectoryEntry entry{.name = file.substr(0, slash), .is_directory = slash != std::string::npos};
    entry.is_regular = !entry.is_directory;
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool IsWholeFolder(const SetInFolder& set) {
  return std::any_of(set.files.begin(), set.files.end(), [](const std::string& file) {
    return file == kParamNameMap || file == kHuggingFaceIndex || file == kHuggingFaceFile;
  });
}

// Finds the entries by which readers do not take the folder for the folder of full tensors of this
// set.
Status AddToWholeFolder(const SetInFolder& set, const std::vector<DirectoryEntry>& entries,
                        std::vector<LeftOver>& found) {
  const auto add = [&](std::string_view name, std::string why) {
    const bool is_there = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return entry.name == name && !entry.is_directory;
    });
    if (is_there && !set.files.contains(std::string(name))) {
      found.push_back({std::string(name), std::move(why)});
    }
  };
  if (set.files.contains(std::string(kParamNameMap))) {
    add(kHyperParamFile, "readers of a unified folder take it as part of the set");
    return {};
  }
  add(kParamNameMap, "readers take the folder for the unified one that it describes");
  const bool has_index = set.files.contains(std::string(kHuggingFaceIndex));
  if (has_index) {
    add(kHuggingFaceFile, "readers take it before the index");
    return {};
  }
  for (const DirectoryEntry& entry : entries) {
    constexpr std::string_view kIndexEnd = ".safetensors.index.json";
    if (entry.name.ends_with(kIndexEnd)) add(entry.name, "readers take the files that it names");
    if (entry.is_directory && entry.name.starts_with("rank_")) {
      found.push_back({entry.name, "readers take the folders of ranks before full tensors"});
    }
  }
  return {};
}

// Finds the entries by which readers take the folder for one of full tensors, and not for one of
// ranks.
Status AddIndexes(const SetInFolder& set, const std::vector<DirectoryEntry>& entries,
                  std::vector<LeftOver>& found) {
  const auto whole = FullFolderOf(set.folder, entries);
  for (const DirectoryEntry& entry : entries) {
    const bool is_index =
        whole.ok() ? *whole && entry.name == (*whole)->index : IsFolderIndex(entry.name);
    if (!is_index || set.files.contains(entry.name)) continue;
    found.push_back({entry.name, "readers take the files that it names, not folders of ranks"});
  }
  return {};
}

// The set's files in each folder rank_N, by that folder.
std::map<std::string, std::set<std::string>> RankFolders(const SetInFolder& set) {
  std::map<std::string, std::set<std::string>> folders;
  for (const std::string& file : set.files) {
    const size_t slash = file.find('/');
    if (slash == std::string::npos || file.find('/', slash + 1) != std::string::npos) continue;
    const std::string folder = file.substr(0, slash);
    if (RankOfFolder(folder) && !CheckpointExtension(file).empty()) {
      folders[folder].insert(file.substr(slash + 1));
    }
  }
  return folders;
}

Status AddInRankFolder(const SetInFolder& set, const std::string& folder,
                       const std::set<std::string>& own, std::vector<LeftOver>& found) {
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                           ListIfThere(PathIn(set.folder, folder)));
  const std::string_view extension = CheckpointExtension(*own.begin());
  std::vector<std::string> names(own.begin(), own.end());
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_regular || own.contains(entry.name)) continue;
    if (set.gone.contains(folder + '/' + entry.name)) continue;
    if (set.each_alone && CheckpointExtension(entry.name) != extension) continue;
    names.push_back(entry.name);
  }
  for (const auto& [name, why] : TakenInRankFolder(std::move(names))) {
    if (!own.contains(name)) found.push_back({fmt::format("{}/{}", folder, name), why});
  }
  return {};
}

}  // namespace

Result<std::vector<LeftOver>> FindLeftOvers(const SetInFolder& set) {
  std::vector<LeftOver> found;
  if (set.has_own_names) return found;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, EntriesToCome(set));
  if (!set.each_alone && IsWholeFolder(set)) {
    RESHARD_RETURN_IF_ERROR(AddToWholeFolder(set, entries, found));
    return found;
  }
  const auto folders = RankFolders(set);
  if (folders.empty()) return found;
  if (!set.each_alone) RESHARD_RETURN_IF_ERROR(AddIndexes(set, entries, found));
  std::map<int64_t, std::string_view> ranks;
  for (const auto& [folder, own] : folders) ranks.emplace(*RankOfFolder(folder), folder);
  for (const DirectoryEntry& entry : entries) {
    const auto rank = entry.is_directory ? RankOfFolder(entry.name) : std::nullopt;
    const auto own = rank ? ranks.find(*rank) : ranks.end();
    if (own == ranks.end() || own->second == entry.name || folders.contains(entry.name)) continue;
    found.push_back({entry.name, fmt::format("it names rank {}, as {} does", *rank, own->second)});
  }
  for (const auto& [folder, own] : folders) {
    RESHARD_RETURN_IF_ERROR(AddInRankFolder(set, folder, own, found));
  }
  return found;
}

SetInFolder RulesOf(const std::string& folder, std::string_view origin, bool has_strategy) {
  const LastRun run = LastRunOf(origin);
  const bool each_alone = !has_strategy && (run.format == "ckpt" || run.format == "safetensors");
  return {.folder = folder,
          .files = {},
          .gone = {},
          .has_own_names = HasOwnNames(run.names),
          .each_alone = each_alone};
}

Status CheckReaders(const SetInFolder& rules, const NamesToCome& names) {
  SetInFolder set = rules;
  set.files = names.listed;
  set.gone = names.gone;
  // Sets of other stages lie side by side, each with its own manifest.
  const auto target = OutputDirectory::Open(set.folder);
  if (target.ok()) {
    RESHARD_ASSIGN_OR_RETURN(const std::vector<std::string> all, target->Names());
    for (const std::string& name : all) {
      if (!IsManifestName(name)) continue;
      const auto bytes = target->ReadFile(name, kMaxManifestBytes);
      if (!bytes.ok()) continue;
      const auto manifest = ParseManifest(*bytes, name);
      if (!manifest.ok()) continue;
      for (const ManifestFile& file : manifest->files) {
        if (!names.of_older.contains(file.path)) set.files.insert(file.path);
      }
    }
  }
  RESHARD_ASSIGN_OR_RETURN(const std::vector<LeftOver> found, FindLeftOvers(set));
  if (found.empty()) return {};
  const LeftOver& first = found.front();
  // For a folder, the entries below it.
  const auto older = names.of_older.lower_bound(first.path);
  const bool is_older = older != names.of_older.end() &&
                        (*older == first.path || older->starts_with(first.path + '/'));
  return AlreadyExistsError(fmt::format(
      "{}: is no file of the set to be written{}, but {}; {}",
      Escape(PathIn(set.folder, first.path)),
      found.size() == 1 ? "" : fmt::format(" (nor are {} more)", found.size() - 1), first.why,
      is_older && !names.prunes ? "pass `force` and `prune` to remove the files of the older set, "
                                  "or choose another target folder"
                                : "move it, or choose another target folder"));
}

}  // namespace reshard
