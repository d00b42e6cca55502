#include "src/sharded/torch_rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/container/device_mesh.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/sharded/listed_files.h"
#include "src/source/indexed_file.h"
#include "src/source/listed_placement.h"
#include "src/source/part_coverage.h"
#include "src/source/part_list.h"

namespace reshard {
namespace {

// Collects the arrays of the ranks' files into tensors, file by file.
class RankCollector {
 public:
  explicit RankCollector(const SourceRequest& request) : request_(request) {}

  Status Add(int64_t rank, const IndexedFile& file) {
    const std::string& path = request_.files.path(file.file());
    RESHARD_RETURN_IF_ERROR(TakeUnread(file, path));
    std::unordered_map<std::string_view, const MeshTensor*> cut;
    for (const MeshTensor& tensor : file.shards().mesh) cut.emplace(tensor.name, &tensor);
    for (const StoredArray& array : file.arrays()) {
      const auto found = cut.find(array.name);
      const Status status = AddArray(array, found == cut.end() ? nullptr : found->second, rank);
      if (!status.ok()) {
        RESHARD_ASSIGN_OR_RETURN(const bool is_left_out, LeavesOut(array, status));
        if (is_left_out) continue;
        return status.WithMessage(
            fmt::format("{}: {}: {}", Escape(path), Quote(array.name), status.message()));
      }
      if (++arrays_ % kMemoryCheckInterval == 0) {
        RESHARD_RETURN_IF_ERROR(CheckMemory(request_.memory));
      }
    }
    return {};
  }

  // Whether a file has a tensor of this name that cannot be read, which is only listed.
  bool IsUnread(std::string_view name) const { return unread_.contains(name); }

  // Why there is no tensor.
  Status NoTensor() const {
    if (unread_.empty()) {
      return MismatchError(fmt::format("{}: its files hold no tensor", Escape(request_.path)));
    }
    std::vector<UnreadTensor> unread;
    for (const auto& [name, why] : unread_) unread.push_back({name, why});
    return UnsupportedError(WarningOfUnread(Escape(request_.path), unread).message);
  }

  PartList Finish() { return std::move(parts_).Finish(); }
  // Tensors that are not wanted, and whose parts do not fit.
  std::vector<UnreadTensor> TakeLeftOut() { return std::move(left_out_); }

 private:
  struct Tensor {
    size_t number = 0;
    DType dtype = DType::kFloat32;
    Shape full;
    int64_t rank = 0;  // of the first file that has it
    std::string name_in_files;
  };

  // Takes the tensors of a file that cannot be read, if they are to be listed. Errors: kUnsupported
  // if they are not, and one is wanted.
  Status TakeUnread(const IndexedFile& file, const std::string& path) {
    if (!request_.lists_unread) {
      return CheckNoneUnread(file, path, [&](const std::string& name) -> Result<bool> {
        RESHARD_ASSIGN_OR_RETURN(const std::string new_name,
                                 request_.names.from_files.NewNameOf(name));
        return IsWanted(request_, new_name);
      });
    }
    for (const UnreadTensor& tensor : file.beside().unread) {
      RESHARD_ASSIGN_OR_RETURN(std::string name, request_.names.from_files.NewNameOf(tensor.name));
      unread_.emplace(std::move(name), tensor.why);
    }
    return {};
  }

  // Whether `status` is about an array that is not wanted.
  Result<bool> LeavesOut(const StoredArray& array, const Status& status) {
    if (status.code() != StatusCode::kMismatch && status.code() != StatusCode::kUnsupported) {
      return false;
    }
    RESHARD_ASSIGN_OR_RETURN(std::string name,
                             request_.names.from_files.NewNameOf(std::string(array.name)));
    if (IsWanted(request_, name)) return false;
    left_out_.push_back({std::move(name), status.message()});
    return true;
  }

  // `cut` is null for an array that is the whole tensor.
  Status AddArray(const StoredArray& array, const MeshTensor* cut, int64_t rank) {
    const Shape& full = cut == nullptr ? array.shape : cut->full_shape;
    Box box = Box::Whole(full);
    if (cut != nullptr) {
      RESHARD_ASSIGN_OR_RETURN(box, BoxOfRank(*cut, rank));
      if (box.extent != array.shape) {
        return MismatchError(fmt::format(
            "has the shape {}, but rank {} of a mesh {} should hold {} of the full shape {}",
            ToString(array.shape), rank, ToString(cut->mesh->extents), ToString(box),
            ToString(full)));
      }
    }
    if (!TensorBytes(full, array.dtype)) {
      return CorruptError(fmt::format("the full shape {} has too many bytes", ToString(full)));
    }
    RESHARD_ASSIGN_OR_RETURN(const size_t number, NumberOf(array, full, rank));
    parts_.AddPart(number, box, array.shape, rank);
    return {};
  }

  // Returns the number of the tensor that an array is a part of.
  Result<size_t> NumberOf(const StoredArray& array, const Shape& full, int64_t rank) {
    const std::string name(array.name);
    RESHARD_ASSIGN_OR_RETURN(const std::string new_name, request_.names.from_files.NewNameOf(name));
    const auto [place, is_new] = tensors_.try_emplace(new_name);
    Tensor& tensor = place->second;
    if (is_new) {
      tensor = {parts_.AddTensor(new_name, full, array.dtype), array.dtype, full, rank, name};
    }
    if (tensor.name_in_files != name) {
      return MismatchError(fmt::format(
          "`name_map` gives two parameters the name {}; remove one from the map", Quote(new_name)));
    }
    if (tensor.dtype != array.dtype || tensor.full != full) {
      return MismatchError(fmt::format(
          "is {} {}, but {} {} in the file of rank {}; do the files come from one save?",
          DTypeName(array.dtype), ToString(full), DTypeName(tensor.dtype), ToString(tensor.full),
          tensor.rank));
    }
    return tensor.number;
  }

  const SourceRequest& request_;
  PartListBuilder parts_;
  std::unordered_map<std::string, Tensor> tensors_;         // by name in the source
  std::map<std::string, std::string, std::less<>> unread_;  // why, by name; only if listed
  std::vector<UnreadTensor> left_out_;
  uint64_t arrays_ = 0;
};

// Finds the files of all ranks. Errors: kMismatch if one is missing, or of another world size.
Status FindRankFiles(const ShardedFolder& folder, const SourceRequest& request,
                     FoundSource& found) {
  std::map<int64_t, std::string> names;
  std::optional<TorchRankName> first;  // of `folder`
  FirstFew others;
  for (const DirectoryEntry& entry : folder.entries) {
    const auto name = entry.is_directory ? std::nullopt : ParseTorchRankName(entry.name);
    if (!name) {
      const bool is_other = entry.name.ends_with(".pt") || entry.name.ends_with(".bin");
      if (entry.is_regular && is_other) others.Add(Escape(entry.name));
      continue;
    }
    if (first && first->set != name->set) {
      return MismatchError(
          fmt::format("{}: {} and {} belong to different saves, by their names; move each "
                      "save into a folder of its own",
                      Escape(request.path), Escape(names.begin()->second), Escape(entry.name)));
    }
    first = name;
    const auto [place, is_new] = names.emplace(name->rank, entry.name);
    if (!is_new) {
      return MismatchError(fmt::format("{}: {} and {} both have the rank {}; remove one",
                                       Escape(request.path), Escape(place->second),
                                       Escape(entry.name), name->rank));
    }
  }
  std::vector<int64_t> found_ranks;
  found_ranks.reserve(names.size());
  for (const auto& [rank, name] : names) found_ranks.push_back(rank);
  const NumberRanges missing = Gaps(found_ranks, 0, first->world_size);
  if (missing.count() > 0) {
    const std::string states =
        first->world_size ? fmt::format("says that there are {}", *first->world_size) : "is there";
    return MismatchError(fmt::format("{}: no file of {}, but {} {}; complete the folder",
                                     Escape(request.path), missing.ToSentence("rank"),
                                     Escape(names.rbegin()->second), states));
  }
  for (const auto& [rank, name] : names) {
    RESHARD_ASSIGN_OR_RETURN(ChosenFile file, PinFile(request, folder.below + name, rank));
    found.files.push_back(std::move(file));
  }
  if (others.count() > 0) {
    found.warnings.push_back(
        {WarningCode::kFilesNotRead,
         fmt::format("{}: other files of torch.save beside those of the model, left out: {}",
                     Escape(request.path), others.Joined())});
  }
  return {};
}

}  // namespace

std::optional<TorchRankName> ParseTorchRankName(std::string_view name) {
  constexpr std::string_view kFsdp = "model_world_size_";
  constexpr std::string_view kAccelerate = "pytorch_model_fsdp";
  const bool is_fsdp = name.starts_with(kFsdp) && name.ends_with(".pt");
  if (!is_fsdp && !(name.starts_with(kAccelerate) && name.ends_with(".bin"))) return std::nullopt;
  const std::string_view stem = name.substr(0, name.rfind('.'));
  const std::string_view mark = is_fsdp ? "_rank_" : "_rank";
  const size_t at = stem.rfind(mark);
  const std::string_view begin = is_fsdp ? kFsdp : kAccelerate;
  if (at == std::string_view::npos || at < begin.size()) return std::nullopt;
  const auto rank = ParseNumber<int64_t>(stem.substr(at + mark.size()));
  if (!rank || *rank < 0) return std::nullopt;
  TorchRankName parsed{.set = stem.substr(0, at), .world_size = {}, .rank = *rank};
  const std::string_view number = stem.substr(begin.size(), at - begin.size());
  if (is_fsdp) {
    parsed.world_size = ParseNumber<int64_t>(number);
    const bool fits = parsed.world_size && *rank < *parsed.world_size;
    return fits ? std::optional(parsed) : std::nullopt;
  }
  const bool has_model = number.starts_with('_') && HasOnlyDigits(number.substr(1));
  return number.empty() || has_model ? std::optional(parsed) : std::nullopt;
}

Status ReadTorchRanks(const ShardedFolder& folder, const SourceRequest& request,
                      FoundSource& found) {
  RESHARD_RETURN_IF_ERROR(FindRankFiles(folder, request, found));
  RankCollector collector(request);
  const auto read = [&](FileId file) { return ReadFileTable(request.files, file, request.memory); };
  RESHARD_RETURN_IF_ERROR(
      ForEachTable(found, request, read, [&](const ChosenFile& file, const IndexedFile& table) {
        return collector.Add(file.rank, table);
      }));
  found.unread = collector.TakeLeftOut();
  PartList parts = collector.Finish();
  if (parts.tensors().empty()) return collector.NoTensor();
  RankedFiles ranks;
  ranks.is_folder = true;
  for (const ChosenFile& file : found.files) ranks.files.emplace(file.rank, file.id);
  const auto path_of = [&](int64_t rank) { return request.files.path(ranks.files.at(rank)); };
  for (const PartList::Tensor& tensor : parts.tensors()) {
    if (!IsWanted(request, tensor.name) || collector.IsUnread(tensor.name)) continue;
    RESHARD_RETURN_IF_ERROR(CheckCoverage(parts, tensor, path_of));
  }
  found.placement = std::make_unique<ListedPlacement>(std::move(ranks), std::move(parts));
  return {};
}

}  // namespace reshard
