#include "src/sharded/shard_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/safetensors/sharding_info.h"
#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/sharded/listed_files.h"
#include "src/sharded/shard_name.h"
#include "src/source/indexed_file.h"
#include "src/source/listed_placement.h"
#include "src/source/part_coverage.h"
#include "src/source/part_list.h"

namespace reshard {
namespace {

// Collects the arrays of shards into tensors, file by file.
class ShardCollector {
 public:
  ShardCollector(const SourceRequest& request, size_t files) : request_(request), files_(files) {}

  // Adds the arrays of the file of `rank`.
  Status Add(int64_t rank, const IndexedFile& file) {
    const std::string& path = request_.files.path(file.file());
    RESHARD_RETURN_IF_ERROR(AddSet(file, path));
    const std::string& begins = file.shards().begins;
    if (begins.empty() && !file.arrays().empty()) {
      return CorruptError(
          fmt::format("{}: lacks the metadata {}, which says where the arrays of a shard begin in "
                      "their tensors",
                      Escape(path), kShardingInfo));
    }
    SavedOffsets offsets;
    if (!begins.empty()) {
      Result<SavedOffsets> parsed = ParseShardingInfo(begins);
      if (!parsed.ok()) return InFile(path, parsed.status());
      offsets = *std::move(parsed);
    }
    for (const StoredArray& array : file.arrays()) {
      const auto begin = offsets.find(std::string(array.name));
      if (begin == offsets.end()) {
        return CorruptError(
            fmt::format("{}: {}: the metadata {} does not say where it begins in its tensor",
                        Escape(path), Quote(array.name), kShardingInfo));
      }
      RESHARD_RETURN_IF_ERROR(AddArray(array, begin->second, rank, path));
    }
    if (offsets.size() == file.arrays().size()) return {};
    for (const auto& [name, begin] : offsets) {
      if (file.Find(name) != nullptr) continue;
      return CorruptError(fmt::format("{}: {}: is in the metadata {}, but not in the file",
                                      Escape(path), Quote(name), kShardingInfo));
    }
    return {};
  }

  // Returns all tensors with their parts. Errors: kMismatch if files contradict each other.
  Result<PartList> Finish() && {
    for (auto& [name, tensor] : tensors_) {
      const auto stated = stated_.find(name);
      if (stated != stated_.end()) {
        if (stated->second.size() != tensor.full.size()) {
          return MismatchError(fmt::format(
              "{}: {}: has the shape {} by the metadata {}, but its shards have {} dimensions",
              Escape(PathOf(tensor.rank)), Quote(name), ToString(stated->second), kShardSet,
              tensor.full.size()));
        }
        tensor.full = stated->second;
      }
      if (!TensorBytes(tensor.full, tensor.dtype)) {
        return CorruptError(
            fmt::format("{}: {}: the full shape {}, by the ends of its shards, has too many bytes",
                        Escape(PathOf(tensor.rank)), Quote(name), ToString(tensor.full)));
      }
      parts_.SetFull(tensor.number, tensor.full);
    }
    for (const auto& [name, shape] : stated_) {
      if (tensors_.contains(name) || !IsWanted(request_, name)) continue;
      return MismatchError(fmt::format(
          "{}: {}: is one of the tensors by the metadata {}, but in no shard; complete the folder",
          Escape(request_.path), Quote(name), kShardSet));
    }
    return std::move(parts_).Finish();
  }

 private:
  struct Tensor {
    size_t number = 0;
    DType dtype = DType::kFloat32;
    int64_t rank = 0;  // of the first file that has it
    Shape full;
    std::string name_in_files;
  };

  static Status InFile(const std::string& path, const Status& status) {
    return status.WithMessage(fmt::format("{}: {}", Escape(path), status.message()));
  }

  std::string PathOf(int64_t rank) const { return paths_.at(rank); }

  Status AddArray(const StoredArray& array, const std::vector<int64_t>& begin, int64_t rank,
                  const std::string& path) {
    paths_.try_emplace(rank, path);
    if (array.kind != ArrayKind::kTensor || ElementsOfItem(array.dtype) != 1) {
      return UnsupportedError(
          fmt::format("{}: {}: has elements of less than a byte ({}), which shards cannot cut",
                      Escape(path), Quote(array.name), DTypeName(array.dtype)));
    }
    if (begin.size() != array.shape.size()) {
      return CorruptError(
          fmt::format("{}: {}: has the shape {}, but begins at {} by the metadata {}", Escape(path),
                      Quote(array.name), ToString(array.shape), ToString(begin), kShardingInfo));
    }
    RESHARD_ASSIGN_OR_RETURN(Tensor* const tensor, TensorOf(array, rank, path));
    for (size_t d = 0; d < begin.size(); ++d) {
      const auto end = CheckedAdd(begin[d], array.shape[d]);
      if (!end) {
        return CorruptError(fmt::format("{}: {}: begins at {} by the metadata {}, beyond 2^63",
                                        Escape(path), Quote(array.name), ToString(begin),
                                        kShardingInfo));
      }
      tensor->full[d] = std::max(tensor->full[d], *end);
    }
    parts_.AddPart(tensor->number, {begin, array.shape}, array.shape, rank);
    if (++arrays_ % kMemoryCheckInterval != 0) return {};
    return CheckMemory(request_.memory);
  }

  // Returns the tensor that an array is a part of.
  Result<Tensor*> TensorOf(const StoredArray& array, int64_t rank, const std::string& path) {
    const std::string name(array.name);
    RESHARD_ASSIGN_OR_RETURN(const std::string new_name, request_.names.from_files.NewNameOf(name));
    const auto [place, is_new] = tensors_.try_emplace(new_name);
    Tensor& tensor = place->second;
    if (is_new) {
      tensor = {parts_.AddTensor(new_name, {}, array.dtype), array.dtype, rank,
                Shape(array.shape.size(), 0), name};
    }
    if (tensor.name_in_files != name) {
      return MismatchError(
          fmt::format("{}: `name_map` gives two parameters the name {}; remove one from the map",
                      Escape(path), Quote(new_name)));
    }
    if (tensor.dtype != array.dtype || tensor.full.size() != array.shape.size()) {
      return MismatchError(
          fmt::format("{}: {}: is {} with {} dimensions, but {} with {} in {}; do the files come "
                      "from one save?",
                      Escape(path), Quote(array.name), DTypeName(array.dtype), array.shape.size(),
                      DTypeName(tensor.dtype), tensor.full.size(), Escape(PathOf(tensor.rank))));
    }
    return &tensor;
  }

  // Adds what a file states about the set.
  Status AddSet(const IndexedFile& file, const std::string& path) {
    if (file.shards().set.empty()) return {};
    Result<ShardSet> set = ParseShardSet(file.shards().set);
    if (!set.ok()) return InFile(path, set.status());
    if (set->files && *set->files != files_) {
      return MismatchError(
          fmt::format("{}: is one of {} files by the metadata {}, but {} {} there; complete the "
                      "folder, and remove files of other saves",
                      Escape(path), *set->files, kShardSet, files_, files_ == 1 ? "is" : "are"));
    }
    for (auto& [name, shape] : set->full_shapes) {
      RESHARD_ASSIGN_OR_RETURN(const std::string new_name,
                               request_.names.from_files.NewNameOf(name));
      const auto [place, is_new] = stated_.try_emplace(new_name, shape);
      if (is_new || place->second == shape) continue;
      return MismatchError(fmt::format(
          "{}: {}: has the shape {} by the metadata {}, but {} by "
          "another file; do the files come from one save?",
          Escape(path), Quote(name), ToString(shape), kShardSet, ToString(place->second)));
    }
    return {};
  }

  const SourceRequest& request_;
  const size_t files_;
  PartListBuilder parts_;
  std::unordered_map<std::string, Tensor> tensors_;  // by name in the source
  std::unordered_map<std::string, Shape> stated_;    // by the same
  std::unordered_map<int64_t, std::string> paths_;   // by rank
  uint64_t arrays_ = 0;
};

// Says what a file that cannot be read is, if PyTorch's writer has spoiled it.
Status Explained(SourceFiles& files, FileId file, const Status& status) {
  constexpr std::array<std::byte, 4> kZip = {std::byte{'P'}, std::byte{'K'}, std::byte{3},
                                             std::byte{4}};
  std::array<std::byte, 4> head = {};
  if (!files.Read(file, 0, head).ok() || head != kZip) return status;
  return CorruptError(fmt::format(
      "{}: begins as a zip archive; expected a safetensors header. PyTorch's "
      "HuggingFaceStorageWriter writes an object, such as a number of steps, before the header, "
      "and then no program can read the file; save the tensors without objects",
      Escape(files.path(file))));
}

// Warns of numbers without a file. PyTorch's writer has none for a rank without tensors.
void WarnOfGaps(const std::string& path, const std::vector<ShardName>& names, FoundSource& found) {
  std::set<int64_t> shards;
  for (const ShardName& name : names) shards.insert(static_cast<int64_t>(name.shard));
  const NumberRanges missing = Gaps({shards.begin(), shards.end()}, 1);
  if (missing.count() == 0) return;
  found.warnings.push_back(
      {WarningCode::kMissingRanks,
       fmt::format("{}: no file of {}: PyTorch writes none for a rank without tensors, but if one "
                   "was lost, tensors that it alone had are missing",
                   Escape(path), missing.ToWords("shard"))});
}

// Fails if two files have one box of a tensor: PyTorch's writer writes each once.
Status CheckNoReplicas(const PartList::Tensor& tensor,
                       const std::function<std::string(int64_t rank)>& path_of) {
  for (size_t i = 0; i < tensor.parts.size();) {
    const auto replicas = PartList::ReplicasAt(tensor, i);
    i += replicas.size();
    const Box box = replicas.front().box();
    if (replicas.size() == 1 || box.empty()) continue;
    return MismatchError(fmt::format(
        "{}: {}: has box {}, and so has {}, but PyTorch writes each box once; remove the files of "
        "an older save",
        Escape(path_of(replicas[0].rank())), Quote(tensor.name), ToString(box),
        Escape(path_of(replicas[1].rank()))));
  }
  return {};
}

}  // namespace

Status ReadShards(const ShardedFolder& folder, const SourceRequest& request, FoundSource& found) {
  std::vector<ShardName> names;
  RankedFiles ranks;
  ranks.is_folder = true;
  for (const DirectoryEntry& entry : folder.entries) {
    const std::optional<ShardName> name = ParseShardName(entry.name);
    if (!name || entry.is_directory) continue;
    names.push_back(*name);
    const std::string relative = folder.below + entry.name;
    if (name->files != names.front().files || name->file > name->files || name->file == 0) {
      return MismatchError(fmt::format(
          "{}: {} and {} are not of one save, by the numbers in their names; remove the files of "
          "the older one",
          Escape(request.path),
          Escape(found.files.empty() ? relative : found.files.front().relative_path),
          Escape(relative)));
    }
    const auto rank = static_cast<int64_t>(found.files.size());
    RESHARD_ASSIGN_OR_RETURN(ChosenFile file, PinFile(request, relative, rank));
    ranks.files.emplace(rank, file.id);
    found.files.push_back(std::move(file));
  }
  ShardCollector shards(request, found.files.size());
  const auto read = [&](FileId file) -> Result<IndexedFile> {
    Result<IndexedFile> table = ReadFileTable(request.files, file, request.memory);
    if (!table.ok()) return Explained(request.files, file, table.status());
    return table;
  };
  RESHARD_RETURN_IF_ERROR(
      ForEachTable(found, request, read, [&](const ChosenFile& file, const IndexedFile& table) {
        return shards.Add(file.rank, table);
      }));
  RESHARD_ASSIGN_OR_RETURN(PartList parts, std::move(shards).Finish());
  if (parts.tensors().empty()) {
    return MismatchError(fmt::format("{}: its shards hold no tensor", Escape(request.path)));
  }
  const auto path_of = [&](int64_t rank) {
    return request.files.path(found.files[static_cast<size_t>(rank)].id);
  };
  for (const PartList::Tensor& tensor : parts.tensors()) {
    if (!IsWanted(request, tensor.name)) continue;
    RESHARD_RETURN_IF_ERROR(CheckNoReplicas(tensor, path_of));
    RESHARD_RETURN_IF_ERROR(CheckCoverage(parts, tensor, path_of));
  }
  WarnOfGaps(request.path, names, found);
  found.placement = std::make_unique<ListedPlacement>(std::move(ranks), std::move(parts));
  return {};
}

}  // namespace reshard
