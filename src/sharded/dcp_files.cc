#include "src/sharded/dcp_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/dcp/dcp_names.h"
#include "format/dcp/dcp_reader.h"
#include "format/pickle/pickle_expansion.h"
#include "src/base/natural_order.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/sharded/dcp_tables.h"
#include "src/sharded/listed_files.h"
#include "src/source/indexed_file.h"
#include "src/source/listed_placement.h"
#include "src/source/part_coverage.h"
#include "src/source/part_list.h"

namespace reshard {
namespace {

// Reads one checkpoint.
class DcpOpener {
 public:
  DcpOpener(const ShardedFolder& folder, const SourceRequest& request, FoundSource& found)
      : folder_(folder), request_(request), found_(found) {}

  Status Open() && {
    RESHARD_RETURN_IF_ERROR(ReadMetadata());
    RESHARD_RETURN_IF_ERROR(JoinTensors());
    NumberFiles();
    for (const Tensor& tensor : tensors_) RESHARD_RETURN_IF_ERROR(AddTensor(tensor));
    RESHARD_RETURN_IF_ERROR(CheckItems());
    PartList parts = std::move(parts_).Finish();
    RESHARD_RETURN_IF_ERROR(CheckParts(parts));
    WarnOfObjects();
    RESHARD_RETURN_IF_ERROR(WarnOfFiles());
    Place(std::move(parts));
    return {};
  }

 private:
  // A tensor, as one metadata file or several have it.
  struct Tensor {
    std::string name;  // in the source
    // Places in metadata_ and in its tensors.
    std::vector<std::pair<size_t, size_t>> places;
  };

  const std::string& PathOf(size_t metadata) const { return paths_[metadata]; }

  Status ReadMetadata() {
    std::vector<std::pair<int64_t, std::string>> names;  // by rank
    for (const DirectoryEntry& entry : folder_.entries) {
      if (entry.is_directory) continue;
      const std::optional<int64_t> rank = DcpMetadataRank(entry.name);
      if (rank) names.emplace_back(*rank, entry.name);
      if (entry.name == kDcpMetadataFile) names.emplace_back(-1, entry.name);
    }
    std::sort(names.begin(), names.end());
    has_all_ = names.front().first < 0;
    if (has_all_) names.resize(1);
    if (!request_.files_may_be_missing) RESHARD_RETURN_IF_ERROR(CheckAllRanks(names));
    uint64_t bytes = 0;
    for (const auto& [rank, name] : names) {
      RESHARD_ASSIGN_OR_RETURN(const ChosenFile file,
                               PinFile(request_, folder_.below + name, rank));
      if (!found_.index) found_.index = ChosenFile{0, file.relative_path, file.id, file.identity};
      paths_.push_back(request_.files.path(file.id));
      RESHARD_ASSIGN_OR_RETURN(SourceReader reader, request_.files.OpenReader(file.id));
      RESHARD_ASSIGN_OR_RETURN(DcpMetadata metadata,
                               ReadDcpMetadata(BytesOf(reader, paths_.back()), request_.memory));
      metadata_.push_back(std::make_unique<const DcpMetadata>(std::move(metadata)));
      bytes += file.identity.size();
    }
    expansion_.emplace(bytes);
    return {};
  }

  // Fails if a rank below the last one has left no metadata; it alone may know some tensors.
  Status CheckAllRanks(const std::vector<std::pair<int64_t, std::string>>& names) const {
    if (has_all_) return {};
    std::vector<int64_t> ranks;
    ranks.reserve(names.size());
    for (const auto& [rank, name] : names) ranks.push_back(rank);
    const NumberRanges missing = Gaps(ranks, 0);
    if (missing.count() == 0) return {};
    return MismatchError(fmt::format(
        "{}: each rank saved its own metadata, such as {}, but those of {} are missing; complete "
        "the folder",
        Escape(PathIn(request_.path, folder_.below)), names.front().second,
        missing.ToWords("rank")));
  }

  // Finds the tensors of all metadata files, which agree on them.
  Status JoinTensors() {
    std::unordered_map<std::string, size_t> known;  // by name in the source
    std::set<std::string> known_unread;
    for (size_t m = 0; m < metadata_.size(); ++m) {
      const std::vector<DcpTensor>& all = metadata_[m]->tensors;
      for (size_t t = 0; t < all.size(); ++t) {
        RESHARD_ASSIGN_OR_RETURN(const std::string name,
                                 request_.names.from_files.NewNameOf(all[t].name));
        RESHARD_ASSIGN_OR_RETURN(const bool is_read, CanRead(all[t], name, m));
        if (!is_read) {
          if (known_unread.insert(name).second) {
            found_.unread.push_back({name, all[t].unsupported});
          }
          continue;
        }
        const auto [place, is_new] = known.try_emplace(name, tensors_.size());
        if (is_new) tensors_.push_back({name, {}});
        Tensor& tensor = tensors_[place->second];
        const Status same = is_new ? Status() : CheckSame(tensor, all[t], m);
        if (!same.ok() && !IsWanted(request_, name)) continue;
        RESHARD_RETURN_IF_ERROR(same);
        tensor.places.emplace_back(m, t);
        if (t % kMemoryCheckInterval == 0) RESHARD_RETURN_IF_ERROR(CheckMemory(request_.memory));
      }
    }
    if (!tensors_.empty()) return {};
    if (request_.lists_unread && !found_.unread.empty()) {
      return UnsupportedError(WarningOfUnread(Escape(PathOf(0)), found_.unread).message);
    }
    return MismatchError(fmt::format("{}: names no tensor", Escape(PathOf(0))));
  }

  Result<bool> CanRead(const DcpTensor& tensor, std::string_view name, size_t metadata) const {
    if (tensor.dtype) return true;
    if (request_.lists_unread || !IsWanted(request_, name)) return false;
    return UnsupportedError(fmt::format("{}: {}: cannot be read: {}; leave it out with `exclude`",
                                        Escape(PathOf(metadata)), Quote(tensor.name),
                                        tensor.unsupported));
  }

  Status CheckSame(const Tensor& tensor, const DcpTensor& again, size_t metadata) const {
    const auto [first, place] = tensor.places.front();
    const DcpTensor& known = metadata_[first]->tensors[place];
    if (known.name != again.name) {
      return MismatchError(
          fmt::format("{}: `name_map` gives two parameters the name {}; remove one from the map",
                      Escape(PathOf(metadata)), Quote(tensor.name)));
    }
    if (known.dtype == again.dtype && known.full == again.full) return {};
    return MismatchError(fmt::format(
        "{}: {}: is {} {}, but {} {} in {}; do the files belong to one checkpoint?",
        Escape(PathOf(metadata)), Quote(again.name), DTypeName(*again.dtype), ToString(again.full),
        DTypeName(*known.dtype), ToString(known.full), Escape(PathOf(first))));
  }

  // Calls visit(metadata, tensor, chunk) for each chunk with elements. If the tensor has no
  // elements, calls it for one chunk that is stored.
  template <typename Visit>
  void ForEachChunk(const Tensor& tensor, const Visit& visit) const {
    for (const auto& [m, t] : tensor.places) {
      const DcpMetadata& metadata = *metadata_[m];
      const DcpTensor& part = metadata.tensors[t];
      const bool is_empty = Box::Whole(part.full).empty();
      for (const DcpChunk& chunk : metadata.ChunksOf(part)) {
        if (!chunk.item || (!is_empty && metadata.BoxOf(part, chunk).empty())) continue;
        visit(m, part, chunk);
        if (is_empty) return;
      }
    }
  }

  // Gives numbers to the files that have chunks of tensors, by their names.
  void NumberFiles() {
    std::vector<std::vector<bool>> is_used;
    for (const auto& metadata : metadata_) is_used.emplace_back(metadata->files.size());
    for (const Tensor& tensor : tensors_) {
      ForEachChunk(tensor, [&](size_t m, const DcpTensor& /*part*/, const DcpChunk& chunk) {
        is_used[m][chunk.item->file] = true;
      });
    }
    for (size_t m = 0; m < metadata_.size(); ++m) {
      for (size_t i = 0; i < is_used[m].size(); ++i) {
        if (is_used[m][i]) names_.push_back(metadata_[m]->files[i]);
      }
    }
    std::sort(names_.begin(), names_.end(),
              [](const std::string& a, const std::string& b) { return IsNaturallyBefore(a, b); });
    names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
    std::unordered_map<std::string_view, uint32_t> numbers;
    for (const std::string& name : names_) {
      numbers.emplace(name, static_cast<uint32_t>(numbers.size()));
    }
    for (const auto& metadata : metadata_) {
      std::vector<uint32_t>& of_files = numbers_.emplace_back();
      for (const std::string& file : metadata->files) {
        const auto known = numbers.find(file);
        of_files.push_back(known == numbers.end() ? 0 : known->second);
      }
    }
    arrays_.resize(names_.size());
  }

  // A chunk in a file.
  struct Located {
    uint32_t file = 0;
    DcpArray array;
  };

  Status AddTensor(const Tensor& tensor) {
    std::vector<Located> located;
    ForEachChunk(tensor, [&](size_t m, const DcpTensor& part, const DcpChunk& chunk) {
      located.push_back({numbers_[m][chunk.item->file], {metadata_[m].get(), &part, &chunk}});
    });
    std::sort(located.begin(), located.end(), [](const Located& a, const Located& b) {
      if (a.file != b.file) return a.file < b.file;
      return a.array.range().offset < b.array.range().offset;
    });
    // A chunk may be listed twice.
    const auto same = [](const Located& a, const Located& b) {
      return a.file == b.file && a.array.range() == b.array.range() &&
             a.array.box() == b.array.box();
    };
    located.erase(std::unique(located.begin(), located.end(), same), located.end());
    const auto [m, t] = tensor.places.front();
    const DcpTensor& first = metadata_[m]->tensors[t];
    const size_t number = parts_.AddTensor(tensor.name, first.full, first.dtype);
    const bool is_wanted = IsWanted(request_, tensor.name);
    for (size_t i = 0; i < located.size(); ++i) {
      const auto is_beside = [&](size_t other) {
        return other < located.size() && located[other].file == located[i].file;
      };
      DcpArray& array = located[i].array;
      array.is_alone = !is_beside(i + 1) && (i == 0 || !is_beside(i - 1));
      RESHARD_RETURN_IF_ERROR(AddPart(number, located[i]));
      if (is_wanted) arrays_[located[i].file].push_back(array);
      if (++chunks_ % kMemoryCheckInterval == 0) {
        RESHARD_RETURN_IF_ERROR(CheckMemory(request_.memory));
      }
    }
    return {};
  }

  Status AddPart(size_t number, const Located& located) {
    const Box box = located.array.box();
    if (located.array.is_alone) {
      parts_.AddPart(number, box, box.extent, located.file);
      return {};
    }
    // As the table of the file names it, after names are mapped.
    RESHARD_ASSIGN_OR_RETURN(const std::string name,
                             request_.names.from_files.NewNameOf(located.array.Name()));
    // Each chunk repeats the tensor's name, which may be long.
    RESHARD_RETURN_IF_ERROR(InFile(PathOf(0), expansion_->Take(name.size())));
    parts_.AddPart(number, box, box.extent, {located.file, name});
    return {};
  }

  // Puts the items of each file in order. Fails if two share bytes.
  Status CheckItems() {
    for (size_t file = 0; file < arrays_.size(); ++file) {
      std::vector<DcpArray>& arrays = arrays_[file];
      std::sort(arrays.begin(), arrays.end(), [](const DcpArray& a, const DcpArray& b) {
        return a.range().offset < b.range().offset;
      });
      for (size_t i = 1; i < arrays.size(); ++i) {
        const ByteRange before = arrays[i - 1].range();
        const ByteRange item = arrays[i].range();
        if (before.end() <= item.offset) continue;
        return CorruptError(
            fmt::format("{}: items of {} overlap: {} bytes at {} ({}), and {} bytes at {} ({})",
                        Escape(PathOf(0)), Escape(names_[file]), before.length, before.offset,
                        Quote(arrays[i - 1].tensor->name), item.length, item.offset,
                        Quote(arrays[i].tensor->name)));
      }
    }
    return {};
  }

  // Adds the files, and proves that the wanted tensors are whole.
  Status CheckParts(const PartList& parts) {
    RESHARD_ASSIGN_OR_RETURN(const std::vector<size_t> missing,
                             AddListedFiles(folder_, request_, names_, found_));
    const auto path_of = [&](int64_t number) {
      return found_.indexed[static_cast<size_t>(number)];
    };
    for (const PartList::Tensor& tensor : parts.tensors()) {
      if (!IsWanted(request_, tensor.name)) continue;
      RESHARD_RETURN_IF_ERROR(CheckCoverage(parts, tensor, path_of));
    }
    return CheckMissingFiles(PathOf(0), names_, missing, parts, request_, found_);
  }

  void WarnOfObjects() {
    std::set<std::string_view> names;  // each rank may list them
    for (const auto& metadata : metadata_) {
      names.insert(metadata->objects.begin(), metadata->objects.end());
    }
    if (names.empty()) return;
    FirstFew shown;
    for (const std::string_view name : names) shown.Add(Quote(name));
    found_.warnings.push_back(
        {WarningCode::kLeftOut,
         fmt::format("{}: {} of its entries {} no tensor; left out: {}", Escape(PathOf(0)),
                     names.size(), names.size() == 1 ? "is" : "are", shown.Joined())});
  }

  // Warns of files that the metadata does not name. A rank without items has an empty file.
  Status WarnOfFiles() {
    std::set<std::string_view> named;
    for (const auto& metadata : metadata_) {
      named.insert(metadata->files.begin(), metadata->files.end());
    }
    const auto is_other = [&](const std::string& name) {
      if (!name.ends_with(kDcpExtension) || named.contains(name)) return false;
      const std::string path = PathIn(request_.path, folder_.below + name);
      const Result<FileIdentity> file = Storage::Of(path).Stat(path);
      return !file.ok() || file->size() > 0;
    };
    WarnOfOtherFiles(folder_, is_other,
                     fmt::format("{}: does not name these files beside it", Escape(PathOf(0))),
                     found_);
    if (has_all_) {
      WarnOfOtherFiles(
          folder_, [](const std::string& name) { return DcpMetadataRank(name).has_value(); },
          fmt::format("{}: has the metadata of all ranks; files beside it", Escape(PathOf(0))),
          found_);
    }
    return {};
  }

  void Place(PartList parts) {
    RankedFiles ranks;
    ranks.is_folder = true;
    std::map<FileId, int64_t> numbers;
    for (const ChosenFile& file : found_.files) {
      ranks.files.emplace(file.rank, file.id);
      numbers.emplace(file.id, file.rank);
    }
    found_.placement = std::make_unique<ListedPlacement>(std::move(ranks), std::move(parts));
    found_.tables = std::make_unique<DcpTables>(std::move(metadata_), std::move(arrays_),
                                                std::move(numbers), PathOf(0));
  }

  const ShardedFolder& folder_;
  const SourceRequest& request_;
  FoundSource& found_;
  bool has_all_ = false;            // whether one metadata file is that of all ranks
  std::vector<std::string> paths_;  // of the metadata files
  std::vector<std::unique_ptr<const DcpMetadata>> metadata_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> names_;              // of the files with chunks, by number
  std::vector<std::vector<uint32_t>> numbers_;  // of the files of each metadata
  std::vector<std::vector<DcpArray>> arrays_;   // that are wanted, by file
  PartListBuilder parts_;
  std::optional<PickleExpansion> expansion_;  // of all metadata
  uint64_t chunks_ = 0;
};

}  // namespace

Status ReadDcp(const ShardedFolder& folder, const SourceRequest& request, FoundSource& found) {
  return DcpOpener(folder, request, found).Open();
}

}  // namespace reshard
