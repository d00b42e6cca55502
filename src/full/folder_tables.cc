#include "src/full/folder_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "format/container/file_table.h"
#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Returns `read` with the table of `builder` instead of its own.
IndexedFile WithTable(const IndexedFile& read, TableBuilder builder) {
  builder.SetMetadata(read.table().metadata());
  return {read.file(), read.file_size(),
          TableOfFile{std::move(builder).Finish(), read.crc(), read.states_redundancy(),
                      read.shards(), read.content_crcs(), read.beside()}};
}

StoredArray WithName(const StoredArray& array, std::string_view name) {
  return {name,        array.kind,   array.dtype,   array.shape,
          array.bytes, array.framed, array.content, array.map_tensor};
}

}  // namespace

Result<IndexedFile> WithNames(IndexedFile read, const NamesInFiles& names,
                              const std::string& path) {
  TableBuilder builder(read.table().container());
  bool any = false;
  for (const StoredArray& array : read.arrays()) {
    RESHARD_ASSIGN_OR_RETURN(const std::string name,
                             names.from_files.NewNameOf(std::string(array.name)));
    any = any || name != array.name;
    builder.Add(name == array.name ? array : WithName(array, name));
  }
  if (!any) return read;
  IndexedFile renamed = WithTable(read, std::move(builder));
  if (const auto twice = renamed.table().FindTwice()) {
    return MismatchError(
        fmt::format("{}: `name_map` gives two parameters the name {}; remove one from the map",
                    Escape(path), Quote(twice->first->name)));
  }
  return renamed;
}

Status RenameWeights(const NamesInFiles& names, const std::string& index, WeightMap& weights) {
  if (names.empty()) return {};
  bool has_old = false;  // if not, the index has the outputs' names
  for (const MappedWeight& weight : weights.weights) {
    const std::string name(weight.name);
    RESHARD_ASSIGN_OR_RETURN(const bool changes, Changes(names.from_files, name));
    has_old = has_old || (changes && !names.to_files.Fits(name));
  }
  if (!has_old) return {};
  for (MappedWeight& weight : weights.weights) {
    RESHARD_ASSIGN_OR_RETURN(const std::string name,
                             names.from_files.NewNameOf(std::string(weight.name)));
    if (name != weight.name) weight.name = weights.names.Keep(name);
  }
  std::sort(weights.weights.begin(), weights.weights.end(),
            [](const MappedWeight& a, const MappedWeight& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      weights.weights.begin(), weights.weights.end(),
      [](const MappedWeight& a, const MappedWeight& b) { return a.name == b.name; });
  if (twice == weights.weights.end()) return {};
  return MismatchError(
      fmt::format("{}: `name_map` gives two parameters the name {}; remove one from the map",
                  Escape(index), Quote(std::string(twice->name))));
}

FolderTables::FolderTables(WeightMap weights, std::optional<int64_t> rest, std::string index,
                           std::map<FileId, int64_t> numbers,
                           std::function<bool(std::string_view)> wants)
    : weights_(std::move(weights)),
      rest_(rest),
      index_(std::move(index)),
      numbers_(std::move(numbers)),
      wants_(std::move(wants)) {
  expected_.resize(weights_.files.size());
  for (const MappedWeight& weight : weights_.weights) expected_[weight.file].push_back(weight.name);
}

Result<IndexedFile> FolderTables::Choose(IndexedFile read, const std::string& path) {
  const int64_t number = numbers_.at(read.file());
  const bool is_rest = rest_ == number;
  std::unordered_set<std::string_view> unread;
  for (const UnreadTensor& tensor : read.beside().unread) unread.insert(tensor.name);
  Note note;
  size_t kept = 0;
  if (!is_rest) {
    const std::vector<std::string_view>& expected = expected_[static_cast<size_t>(number)];
    std::vector<std::string> lost;
    for (const std::string_view name : expected) {
      const StoredArray* const array = read.Find(name);
      if (array == nullptr && ((wants_ && !wants_(name)) || unread.contains(name))) {
        note.lacks_any = true;
      } else if (array == nullptr) {
        lost.push_back(Quote(std::string(name)));
      } else {
        ++kept;
        note.bytes = SaturatingAdd(note.bytes, array->bytes);
      }
    }
    if (!lost.empty()) {
      return MismatchError(fmt::format(
          "{}: lacks {} of the {} tensors that {} lists: {}; do the files come from one folder? "
          "Leave them out with `exclude`, or get the files and the index anew",
          Escape(path), lost.size(), expected.size(), Escape(index_), FirstOf(lost)));
    }
  }
  const auto counts = [&](const StoredArray& array) {
    const MappedWeight* const weight = weights_.Find(array.name);
    return weight == nullptr ? is_rest : weight->file == number;
  };
  TableBuilder builder(read.table().container());
  if (kept != read.arrays().size()) {
    for (const StoredArray& array : read.arrays()) {
      if (counts(array)) {
        builder.Add(array);
      } else {
        note.left_out.push_back(Quote(array.name));
      }
    }
  }
  const bool same = note.left_out.empty();
  {
    const std::lock_guard lock(mutex_);
    notes_.insert_or_assign(number, std::move(note));
  }
  if (same) return read;
  return WithTable(read, std::move(builder));
}

std::vector<Warning> FolderTables::Warnings() const {
  std::vector<Warning> warnings;
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  bool lacks_any = notes_.size() < expected_.size() + (rest_ ? 1 : 0);
  std::vector<std::string> left_out;
  for (const auto& [number, note] : notes_) {
    bytes = SaturatingAdd(bytes, note.bytes);
    lacks_any = lacks_any || note.lacks_any;
    left_out.insert(left_out.end(), note.left_out.begin(), note.left_out.end());
  }
  if (!left_out.empty()) {
    warnings.push_back(
        {WarningCode::kLeftOut,
         fmt::format("{}: does not list {} tensors that its files hold; left out: {}",
                     Escape(index_), left_out.size(), FirstOf(left_out))});
  }
  if (!lacks_any && weights_.total_size && *weights_.total_size != bytes) {
    warnings.push_back({WarningCode::kIndexDisagrees,
                        fmt::format("{}: \"total_size\" is {}, but the tensors have {} bytes",
                                    Escape(index_), *weights_.total_size, bytes)});
  }
  return warnings;
}

}  // namespace reshard
