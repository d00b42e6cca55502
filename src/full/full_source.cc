#include "src/full/full_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/other_files.h"
#include "format/container_table/container_table.h"
#include "format/weight_map/weight_map_codec.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/full/folder_tables.h"
#include "src/full/full_folder.h"
#include "src/io/storage.h"
#include "src/source/indexed_file.h"
#include "src/source/listed_placement.h"

namespace reshard {
namespace {

// Returns the folder, or the single file, that `path` names; no value for other paths.
Result<std::optional<FullFolder>> FullFolderAt(const std::string& path) {
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(path).KindOf(path));
  if (kind == PathKind::kDirectory) return FindFullFolder(path);
  if (kind != PathKind::kFile || ContainerNamed(path) != &kFullContainer) {
    return std::optional<FullFolder>();
  }
  return std::optional(FullFolder{FolderFamily::kHuggingFace, {}, path});
}

// Fails if a file is not an index and its kind is known.
Status CheckIsIndex(const FileBytes& file) {
  std::string head(std::min<uint64_t>(file.size, kHeaderPage), '\0');
  RESHARD_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(head))));
  const std::string_view other = KindOfOtherFile(head);
  if (other.empty() || head.starts_with('{')) return {};
  return CorruptError(fmt::format("{}: expected an index of safetensors files, found {}",
                                  Escape(file.path), other));
}

Result<ChosenFile> Pin(SourceFiles& files, const std::string& path, const std::string& name,
                       int64_t rank) {
  RESHARD_ASSIGN_OR_RETURN(const FileIdentity identity, Storage::Of(path).Pin(path));
  return ChosenFile{rank, name, files.Add(path, identity), identity};
}

// Reads the index. Its weights get their names in this source.
Result<WeightMap> ReadIndex(const ChosenFile& index, const SourceRequest& request) {
  RESHARD_ASSIGN_OR_RETURN(SourceReader reader, request.files.OpenReader(index.id));
  const std::string& path = request.files.path(index.id);
  const FileBytes bytes = BytesOf(reader, path);
  Result<WeightMap> weights = ParseWeightMap(bytes, request.memory);
  if (weights.status().code() == StatusCode::kCorrupt) RESHARD_RETURN_IF_ERROR(CheckIsIndex(bytes));
  if (weights.ok()) RESHARD_RETURN_IF_ERROR(RenameWeights(request.names, path, *weights));
  return weights;
}

// Returns which of the files that an index names have a tensor that is wanted.
std::vector<uint8_t> WantedFiles(const WeightMap& weights, const SourceRequest& request) {
  std::vector<uint8_t> wanted(weights.files.size(), request.wants ? 0 : 1);
  if (!request.wants) return wanted;
  for (const MappedWeight& weight : weights.weights) {
    if (wanted[weight.file] == 0 && request.wants(weight.name)) wanted[weight.file] = 1;
  }
  return wanted;
}

// Chooses the files that the index names.
Status AddIndexed(const WeightMap& weights, const SourceRequest& request, FoundSource& found) {
  const std::vector<uint8_t> wanted = WantedFiles(weights, request);
  FirstFew missing;
  for (size_t i = 0; i < weights.files.size(); ++i) {
    const std::string& path = found.indexed[i];
    const auto number = static_cast<int64_t>(i);
    Result<ChosenFile> file = Pin(request.files, path, weights.files[i], number);
    if (file.status().code() != StatusCode::kNotFound) {
      RESHARD_RETURN_IF_ERROR(file.status());
      found.files.push_back(*std::move(file));
    } else if (request.files_may_be_missing) {
      found.files.push_back({number, weights.files[i], request.files.Add(path), {}});
    } else if (wanted[i] != 0) {
      missing.Add(Escape(weights.files[i]));
    }
  }
  if (missing.count() == 0) return {};
  const std::string index = Escape(request.files.path(found.index->id));
  if (missing.count() == weights.files.size()) {
    return MismatchError(
        fmt::format("{}: names {} file{}, but all are missing: {}; is it the index of another "
                    "folder? Copy the files beside it, or remove it",
                    index, missing.count(), missing.count() == 1 ? "" : "s", missing.Joined()));
  }
  return MismatchError(
      fmt::format("{}: names {} files, but {} {} missing: {}; complete the folder, or leave their "
                  "tensors out with `exclude`",
                  index, weights.files.size(), missing.count(), missing.count() == 1 ? "is" : "are",
                  missing.Joined()));
}

// Says which checkpoints of the folder are left out; `taken` is the index, or the one file.
void WarnOfOthers(const std::string& taken, const FullFolder& folder,
                  const std::function<bool(const std::string&)>& is_read, FoundSource& found) {
  std::vector<std::string> others;
  for (const std::string& name : folder.files) {
    if (!is_read(name)) others.push_back(Escape(name));
  }
  if (others.empty()) return;
  found.warnings.push_back(
      {WarningCode::kFilesNotRead,
       fmt::format("{}: {} checkpoints beside it, left out: {}", Escape(taken),
                   folder.index.empty() ? "is read without the" : "does not name these",
                   FirstOf(others))});
}

// Gives the files that were found their tables and places.
void PlaceFiles(WeightMap weights, const std::string& index, const SourceRequest& request,
                FoundSource& found) {
  std::map<int64_t, FileId> by_rank;
  std::map<FileId, int64_t> numbers;
  for (const ChosenFile& file : found.files) {
    by_rank.emplace(file.rank, file.id);
    numbers.emplace(file.id, file.rank);
  }
  auto tables = std::make_unique<FolderTables>(std::move(weights), found.rest, index,
                                               std::move(numbers), request.wants);
  found.placement =
      std::make_unique<ListedPlacement>(std::move(by_rank), tables->weights(), found.rest);
  found.tables = std::move(tables);
}

Status FindLone(const FullFolder& folder, const SourceRequest& request, FoundSource& found) {
  const bool is_file = folder.lone == request.path;
  const std::string path = is_file ? request.path : PathIn(request.path, folder.lone);
  WarnOfOthers(
      path, folder, [&](const std::string& name) { return name == folder.lone; }, found);
  RESHARD_ASSIGN_OR_RETURN(
      ChosenFile file,
      Pin(request.files, path, std::filesystem::path(folder.lone).filename().string(), 0));
  found.files.push_back(std::move(file));
  found.rest = 0;
  PlaceFiles({}, {}, request, found);
  return {};
}

Status FindIndexed(const FullFolder& folder, const SourceRequest& request, FoundSource& found) {
  const std::string index = PathIn(request.path, folder.index);
  RESHARD_ASSIGN_OR_RETURN(found.index, Pin(request.files, index, folder.index, 0));
  RESHARD_ASSIGN_OR_RETURN(WeightMap weights, ReadIndex(*found.index, request));
  for (const std::string& name : weights.files) {
    found.indexed.push_back(PathIn(request.path, name));
  }
  RESHARD_RETURN_IF_ERROR(AddIndexed(weights, request, found));
  const auto is_mapped = [&weights](std::string_view name) {
    return std::find(weights.files.begin(), weights.files.end(), name) != weights.files.end();
  };
  if (folder.family == FolderFamily::kUnified && !is_mapped(kHyperParamFile)) {
    const std::string beside = PathIn(request.path, kHyperParamFile);
    RESHARD_ASSIGN_OR_RETURN(const PathKind kind, Storage::Of(beside).KindOf(beside));
    if (kind != PathKind::kMissing) {
      found.rest = static_cast<int64_t>(weights.files.size());
      RESHARD_ASSIGN_OR_RETURN(
          ChosenFile file, Pin(request.files, beside, std::string(kHyperParamFile), *found.rest));
      found.files.push_back(std::move(file));
    }
  }
  WarnOfOthers(
      index, folder,
      [&](const std::string& name) {
        return is_mapped(name) || (found.rest && name == kHyperParamFile);
      },
      found);
  PlaceFiles(std::move(weights), index, request, found);
  return {};
}

}  // namespace

Result<std::optional<FoundSource>> FindFullSource(const SourceRequest& request) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<FullFolder> folder, FullFolderAt(request.path));
  if (!folder) return std::optional<FoundSource>();
  FoundSource found;
  found.container = folder->container;
  found.files_are_numbered = true;
  found.looks_into_all = true;
  RESHARD_RETURN_IF_ERROR(folder->index.empty() ? FindLone(*folder, request, found)
                                                : FindIndexed(*folder, request, found));
  return std::optional(std::move(found));
}

}  // namespace reshard
