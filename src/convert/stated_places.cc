#include "src/convert/stated_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "format/container_table/container_table.h"
#include "format/mindformers_metadata/file_names.h"
#include "format/safetensors/sharding_info.h"
#include "reshard/tensor.h"
#include "src/base/checked.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/mindspore/rank_pattern.h"
#include "src/sharded/shard_name.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::string_view FileName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Locale does not count.
bool IsLetterOrDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the last word of `text`, without the separator at its end.
std::string_view WordBefore(std::string_view text) {
  if (!text.empty()) text.remove_suffix(1);
  size_t begin = text.size();
  while (begin > 0 && IsLetterOrDigit(text[begin - 1])) --begin;
  return text.substr(begin);
}

// Whether "rank" after this word is not the rank of a training process. It may belong to a node or
// to an axis of a parallel layout, or be the rank of a matrix.
bool QualifiesRank(std::string_view word) {
  constexpr std::array<std::string_view, 13> kWords = {
      "local", "node", "dp", "tp", "pp", "mp", "ep", "cp", "sp", "vpp", "lora", "low", "adapter"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

// One of several files.
struct StatedPart {
  std::string_view stem;
  std::string_view extension;
  uint64_t number = 0;
  uint64_t count = 0;
};

// Returns the extension of a file of torch.save, whose files are taken only by their names.
std::string_view TorchExtension(std::string_view name) {
  for (const std::string_view extension : {".bin", ".pt", ".pth"}) {
    if (name.ends_with(extension)) return name.substr(name.size() - extension.size());
  }
  return {};
}

// Returns the part that a name STEM-KKKKK-of-NNNNN.EXT states. The numbers have at least five
// digits each. The names of MindFormers 2.0 state parts, too.
std::optional<StatedPart> PartStatedBy(std::string_view name) {
  constexpr size_t kLeastDigits = 5;
  constexpr std::string_view kOf = "-of-";
  StatedPart part;
  part.extension = CheckpointExtension(name);
  if (part.extension.empty()) part.extension = TorchExtension(name);
  if (const auto slice = ParseMindFormersName(name)) {
    part.stem = slice->is_optimizer ? "opt" : "model";
    part.number = slice->number;
    part.count = slice->count;
    return part;
  }
  std::string_view stem = name.substr(0, name.size() - part.extension.size());
  const auto take_number = [&stem]() -> std::optional<uint64_t> {
    const size_t begin = stem.find_last_not_of(kDigits) + 1;  // 0 if all are digits
    const std::string_view digits = stem.substr(begin);
    stem = stem.substr(0, begin);
    if (digits.size() < kLeastDigits) return std::nullopt;
    return ParseNumber<uint64_t>(digits);
  };
  const auto count = take_number();
  if (!count || !stem.ends_with(kOf)) return std::nullopt;
  stem.remove_suffix(kOf.size());
  const auto number = take_number();
  if (!number || !stem.ends_with('-')) return std::nullopt;
  stem.remove_suffix(1);
  part.stem = stem;
  part.number = *number;
  part.count = *count;
  return part;
}

// Returns K of shard-KKKKK-model-NNNNN-of-MMMMM.safetensors.
std::optional<uint64_t> ShardStatedBy(std::string_view name) {
  const std::optional<ShardName> shard = ParseShardName(name);
  return shard ? std::optional(shard->shard) : std::nullopt;
}

// Fails if a folder has further shards beside one that PyTorch's writer has named.
Status CheckAllShards(std::span<const std::string> paths) {
  std::map<std::string, std::set<std::string>> names;  // by folder
  for (const std::string& path : paths) {
    const std::string_view name = FileName(path);
    if (!ShardStatedBy(name)) continue;
    std::string folder = path.substr(0, path.size() - name.size());
    names[folder.empty() ? "." : std::move(folder)].insert(std::string(name));
  }
  for (const auto& [folder, own] : names) {
    std::vector<std::string> others;
    if (const auto entries = Storage::Of(folder).List(folder); entries.ok()) {
      for (const DirectoryEntry& entry : *entries) {
        if (ShardStatedBy(entry.name) && !own.contains(entry.name)) {
          others.push_back(Escape(entry.name));
        }
      }
    }
    const bool lacks_first = own.size() == 1 && ShardStatedBy(*own.begin()) > uint64_t{1};
    if (others.empty() && !lacks_first) continue;
    return MismatchError(fmt::format(
        "{}: its name states that it is one shard of several, and the others are not read{}; give "
        "the folder of all shards as the source, or pass `partial` to convert only these",
        Escape(PathIn(folder, *own.begin())),
        others.empty() ? "" : fmt::format(": {}", FirstOf(others))));
  }
  return {};
}

// Fails if the shards of a folder lack one of the files that PyTorch's writer counts in their
// names.
Status CheckAllShardFiles(const OpenedSource& source) {
  std::set<uint64_t> found;
  uint64_t files = 0;
  for (const ChosenFile& file : source.chosen()) {
    const std::optional<ShardName> name = ParseShardName(FileName(file.relative_path));
    if (!name) continue;
    found.insert(name->file);
    files = name->files;
  }
  uint64_t next = 1;
  for (const uint64_t number : found) {
    if (number != next) break;
    ++next;
  }
  if (next > files) return {};
  const std::string& first = source.path(source.chosen().front());
  const std::string folder = first.substr(0, first.size() - FileName(first).size());
  return MismatchError(fmt::format(
      "{}: no file of number {:05} of {} is there, as the names of its files count; get "
      "it, or pass `partial` to convert without it",
      Escape(folder.empty() ? "." : folder), next, files));
}

// Whether `found`, numbers of parts, are all of `count`, counted from 1 or from 0.
bool AreAll(const std::set<uint64_t>& found, uint64_t count) {
  return found.size() == count && *found.begin() <= 1 &&
         *found.rbegin() - *found.begin() == count - 1;
}

}  // namespace

std::vector<int64_t> RanksStatedBy(std::string_view name) {
  constexpr std::string_view kRank = "rank";
  std::vector<int64_t> ranks;
  const std::string_view stem = Stem(name);
  for (size_t at = stem.find(kRank); at != std::string_view::npos; at = stem.find(kRank, at + 1)) {
    if (at > 0 && IsLetterOrDigit(stem[at - 1])) continue;
    std::string_view rest = stem.substr(at + kRank.size());
    if (rest.starts_with('_')) rest.remove_prefix(1);
    const std::string_view digits = rest.substr(0, rest.find_first_not_of(kDigits));
    rest.remove_prefix(digits.size());
    const bool is_fraction =
        rest.size() > 1 && rest[0] == '.' && kDigits.find(rest[1]) != std::string_view::npos;
    if ((!rest.empty() && IsLetterOrDigit(rest[0])) || is_fraction) continue;
    const auto rank = ParseNumber<int64_t>(digits);
    if (rank && !QualifiesRank(WordBefore(stem.substr(0, at)))) ranks.push_back(*rank);
  }
  return ranks;
}

Status CheckRanksOfNames(const OpenedSource& source, const SourceSpec& spec) {
  if (!spec.files.empty() || source.files_are_numbered() || source.each_alone()) return {};
  std::string first;
  size_t count = 0;
  for (const ChosenFile& file : source.chosen()) {
    const std::vector<int64_t> ranks = RanksStatedBy(FileName(file.relative_path));
    if (ranks.empty() || std::find(ranks.begin(), ranks.end(), file.rank) != ranks.end()) continue;
    if (++count > 1) continue;
    first = fmt::format("{}: its name states rank {}, but its place rank {}",
                        Escape(source.path(file)), ranks.front(), file.rank);
  }
  if (count == 0) return {};
  return MismatchError(fmt::format(
      "{}{}; put each file where its rank belongs, or pass `source.files=RANK=FILE` for each rank "
      "to take them as they are",
      first, count == 1 ? "" : fmt::format(", and so do {} more", count - 1)));
}

Status CheckAllParts(std::span<const std::string> paths) {
  using Set = std::tuple<std::string_view, std::string_view, uint64_t>;
  std::map<Set, std::set<uint64_t>> found;
  std::map<Set, std::string_view> examples;
  for (const std::string& path : paths) {
    const auto part = PartStatedBy(FileName(path));
    if (!part) continue;
    const Set set{part->stem, part->extension, part->count};
    found[set].insert(part->number);
    examples.emplace(set, path);
  }
  for (const auto& [set, numbers] : found) {
    const auto& [stem, extension, count] = set;
    if (count <= 1 || AreAll(numbers, count)) continue;
    return MismatchError(fmt::format(
        "{}: states that it is one of {} files, but only {} {} read ({}); give all files, such as "
        "their folder with its index, or pass `partial` to convert only these",
        Escape(examples.at(set)), count, numbers.size(), numbers.size() == 1 ? "is" : "are",
        RangesOf({numbers.begin(), numbers.end()})));
  }
  return CheckAllShards(paths);
}

Status CheckAllParts(const OpenedSource& source) {
  if (source.StatesParts()) return CheckAllShardFiles(source);
  std::vector<std::string> paths;
  paths.reserve(source.chosen().size());
  for (const ChosenFile& file : source.chosen()) paths.push_back(source.path(file));
  // A file that an index names may be missing if all its tensors are left out.
  paths.insert(paths.end(), source.indexed().begin(), source.indexed().end());
  return CheckAllParts(paths);
}

Status CheckSavedOffsets(std::span<const TableHandle> tables, const SourceFiles& files,
                         TakenAs as) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::map<std::string, std::vector<Box>> boxes;
  std::map<std::string, int64_t> rows;
  for (const TableHandle& table : tables) {
    if (table->shards().begins.empty()) continue;
    const std::string& path = files.path(table->file());
    const Result<SavedOffsets> saved = ParseShardingInfo(table->shards().begins);
    if (!saved.ok()) {
      return CorruptError(fmt::format("{}: {}; `partial` takes the file without it", Escape(path),
                                      saved.status().message()));
    }
    for (const auto& [name, offsets] : *saved) {
      const StoredArray* const array = table->Find(name);
      if (array == nullptr || array->shape.size() != offsets.size()) continue;
      if (as == TakenAs::kPlaced) {
        const Box box{offsets, array->shape};
        std::vector<Box>& known = boxes[name];
        if (std::find(known.begin(), known.end(), box) == known.end()) known.push_back(box);
        continue;
      }
      std::vector<int64_t> expected(offsets.size(), 0);
      if (as == TakenAs::kSlices && !expected.empty()) {
        expected[0] = std::exchange(rows[name], rows[name] + array->shape[0]);
      }
      if (offsets == expected) continue;
      return MismatchError(fmt::format(
          "{}: {} is a shard by its metadata {}, from element {} of the tensor on, but would be "
          "taken from {} on; give the folder of all shards as the source, or pass `partial` to "
          "take it so",
          Escape(path), Quote(name), kShardingInfo, ToString(offsets), ToString(expected)));
    }
  }
  for (auto& [name, parts] : boxes) {
    Shape full(parts.front().dims(), 0);
    bool fits = true;
    for (const Box& box : parts) {
      fits = fits && box.dims() == full.size();
      if (!fits) break;
      for (size_t i = 0; i < full.size(); ++i) {
        const auto end = CheckedAdd(box.begin[i], box.extent[i]);
        fits = fits && end;
        full[i] = std::max(full[i], end.value_or(kMost));
      }
    }
    std::erase_if(parts, [](const Box& box) { return box.empty(); });
    if (fits && ElementCount(full) && (parts.empty() || CoversExactly(Box::Whole(full), parts))) {
      continue;
    }
    return MismatchError(fmt::format(
        "{}: {} shards of {} do not make up a tensor {} by the metadata {}, such as "
        "{}; give the files of all ranks, or pass `partial` to convert only these",
        Escape(files.path(tables.front()->file())), parts.size(), Quote(name), ToString(full),
        kShardingInfo, parts.empty() ? "none" : ToString(parts.front())));
  }
  return {};
}

Status CheckSavedOffsets(OpenedSource& source) {
  if (source.StatesParts()) return {};
  std::vector<TableHandle> tables;
  for (const FileId file : source.FilesWithOffsets()) {
    RESHARD_ASSIGN_OR_RETURN(tables.emplace_back(), source.tables().Get(file));
  }
  return CheckSavedOffsets(tables, source.files(),
                           source.rule().source() == nullptr ? TakenAs::kWhole : TakenAs::kPlaced);
}

}  // namespace reshard
