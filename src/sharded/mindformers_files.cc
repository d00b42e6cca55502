#include "src/sharded/mindformers_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/container_table/container_table.h"
#include "format/mindformers_metadata/file_names.h"
#include "format/mindformers_metadata/metadata_reader.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/sharded/listed_files.h"
#include "src/sharded/slice_tables.h"
#include "src/source/indexed_file.h"
#include "src/source/listed_placement.h"
#include "src/source/part_coverage.h"
#include "src/source/part_list.h"

namespace reshard {
namespace {

// Returns the tensors with the boxes of their slices. They get their names in this source.
Result<PartList> PartsOf(const MindFormersMetadata& metadata, const std::string& path,
                         const SourceRequest& request) {
  PartListBuilder parts;
  std::unordered_map<std::string, std::string> made_of;  // names in files, by name in the source
  uint64_t slices = 0;
  for (const MindFormersTensor& tensor : metadata.tensors) {
    RESHARD_ASSIGN_OR_RETURN(const std::string name,
                             request.names.from_files.NewNameOf(tensor.name));
    if (!request.names.empty() && !made_of.emplace(name, tensor.name).second) {
      return MismatchError(
          fmt::format("{}: `name_map` gives two parameters the name {}; remove one from the map",
                      Escape(path), Quote(name)));
    }
    const size_t number = parts.AddTensor(name, tensor.full, tensor.dtype);
    for (const MindFormersSlice& slice : tensor.slices) {
      for (const uint32_t file : slice.files) {
        parts.AddPart(number, {slice.begin, tensor.slice_shape}, tensor.slice_shape, file);
        if (++slices % kMemoryCheckInterval == 0) {
          RESHARD_RETURN_IF_ERROR(CheckMemory(request.memory));
        }
      }
    }
  }
  return std::move(parts).Finish();
}

// Whether a file is named as those of `found`.
bool IsNamedAs(const FoundSource& found, const std::string& name) {
  return !name.starts_with('.') && ContainerNamed(name) == found.container;
}

Status ReadWithMetadata(const ShardedFolder& folder, const SourceRequest& request,
                        FoundSource& found) {
  found.looks_into_all = true;
  RESHARD_ASSIGN_OR_RETURN(
      found.index, PinFile(request, folder.below + std::string(kMindFormersMetadataFile), 0));
  const std::string& path = request.files.path(found.index->id);
  RESHARD_ASSIGN_OR_RETURN(SourceReader reader, request.files.OpenReader(found.index->id));
  RESHARD_ASSIGN_OR_RETURN(const MindFormersMetadata metadata,
                           ReadMindFormersMetadata(BytesOf(reader, path), request.memory));
  if (metadata.tensors.empty()) {
    return MismatchError(fmt::format("{}: names no tensor", Escape(path)));
  }
  RESHARD_ASSIGN_OR_RETURN(const std::vector<size_t> missing,
                           AddListedFiles(folder, request, metadata.files, found));
  RESHARD_ASSIGN_OR_RETURN(PartList parts, PartsOf(metadata, path, request));
  const auto path_of = [&](int64_t number) { return found.indexed[static_cast<size_t>(number)]; };
  for (const PartList::Tensor& tensor : parts.tensors()) {
    if (IsWanted(request, tensor.name)) {
      RESHARD_RETURN_IF_ERROR(CheckCoverage(parts, tensor, path_of));
    }
  }
  RESHARD_RETURN_IF_ERROR(CheckMissingFiles(path, metadata.files, missing, parts, request, found));
  const auto is_other = [&](const std::string& name) {
    return IsNamedAs(found, name) &&
           !std::binary_search(metadata.files.begin(), metadata.files.end(), name);
  };
  WarnOfOtherFiles(folder, is_other,
                   fmt::format("{}: does not name these checkpoints beside it", Escape(path)),
                   found);
  RankedFiles ranks;
  ranks.is_folder = true;
  std::map<FileId, int64_t> numbers;
  for (const ChosenFile& file : found.files) {
    ranks.files.emplace(file.rank, file.id);
    numbers.emplace(file.id, file.rank);
  }
  auto placement = std::make_unique<ListedPlacement>(std::move(ranks), std::move(parts));
  found.tables = std::make_unique<SliceTables>(*placement->all_tensors(), std::move(numbers), path,
                                               request.wants);
  found.placement = std::move(placement);
  return {};
}

// Whole tensors in one file of parameters and one of the optimizer's states.
Status ReadWithoutMetadata(const ShardedFolder& folder, const SourceRequest& request,
                           FoundSource& found) {
  RankedFiles ranks;
  ranks.is_folder = true;
  PartListBuilder parts;
  std::unordered_map<std::string, std::string> seen;  // the file of each tensor
  for (const DirectoryEntry& entry : folder.entries) {
    const auto name = entry.is_directory ? std::nullopt : ParseMindFormersName(entry.name);
    if (!name) continue;
    const auto number = static_cast<int64_t>(found.files.size());
    RESHARD_ASSIGN_OR_RETURN(ChosenFile file, PinFile(request, folder.below + entry.name, number));
    const std::string& path = request.files.path(file.id);
    if (name->count != 1) {
      return MismatchError(fmt::format(
          "{}: is one of {} files by its name, but {} is missing, which says what they hold; get "
          "it from where the files came from",
          Escape(path), name->count, kMindFormersMetadataFile));
    }
    RESHARD_ASSIGN_OR_RETURN(IndexedFile table,
                             ReadFileTable(request.files, file.id, request.memory));
    for (const StoredArray& array : table.arrays()) {
      RESHARD_ASSIGN_OR_RETURN(const std::string new_name,
                               request.names.from_files.NewNameOf(std::string(array.name)));
      const auto [place, is_new] = seen.emplace(new_name, path);
      if (!is_new) {
        return MismatchError(fmt::format("{}: {} is in {}, too; remove one of the two files",
                                         Escape(path), Quote(new_name), Escape(place->second)));
      }
      if (array.kind != ArrayKind::kTensor) {
        return UnsupportedError(fmt::format("{}: {}: has elements of less than a byte ({})",
                                            Escape(path), Quote(array.name),
                                            DTypeName(array.dtype)));
      }
      const size_t tensor = parts.AddTensor(new_name, array.shape, array.dtype);
      parts.AddPart(tensor, Box::Whole(array.shape), array.shape, number);
    }
    ranks.files.emplace(number, file.id);
    found.files.push_back(std::move(file));
  }
  if (seen.empty()) {
    return MismatchError(fmt::format("{}: its files hold no tensor", Escape(request.path)));
  }
  const auto is_other = [&](const std::string& name) {
    return IsNamedAs(found, name) && !ParseMindFormersName(name);
  };
  WarnOfOtherFiles(folder, is_other,
                   fmt::format("{}: has these checkpoints beside those of MindFormers 2.0",
                               Escape(PathIn(request.path, folder.below))),
                   found);
  found.placement = std::make_unique<ListedPlacement>(std::move(ranks), std::move(parts).Finish());
  return {};
}

}  // namespace

Status ReadMindFormers(const ShardedFolder& folder, const SourceRequest& request,
                       FoundSource& found) {
  const bool has_metadata =
      std::any_of(folder.entries.begin(), folder.entries.end(), [](const DirectoryEntry& entry) {
        return !entry.is_directory && entry.name == kMindFormersMetadataFile;
      });
  return has_metadata ? ReadWithMetadata(folder, request, found)
                      : ReadWithoutMetadata(folder, request, found);
}

}  // namespace reshard
