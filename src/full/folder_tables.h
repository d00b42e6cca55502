// FolderTables: the tables of the files in a folder of full tensors, restricted to its index. A
// file counts with the tensors that the index assigns to it, and no others.
//
// Thread-safe.
#ifndef RESHARD_SRC_FULL_FOLDER_TABLES_H_
#define RESHARD_SRC_FULL_FOLDER_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/rename_map/renaming.h"
#include "format/weight_map/weight_map_codec.h"
#include "reshard/status.h"
#include "src/source/found_source.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Returns `read` with the names of `names` for its arrays. `path` is for messages. Errors:
//   kInvalidArgument: a name fits two patterns
//   kMismatch: two arrays would have one name
Result<IndexedFile> WithNames(IndexedFile read, const NamesInFiles& names, const std::string& path);

// Gives the weights of the index `index` the names of `names`, unless the index already has these.
// Errors: as WithNames.
Status RenameWeights(const NamesInFiles& names, const std::string& index, WeightMap& weights);

class FolderTables final : public FamilyTables {
 public:
  // `weights` assigns tensors to files by number. Tensors without an entry count in the file of
  // `rest`. `index` is for messages. `numbers` has the numbers of all files. Tensors that `wants`
  // rejects may be missing; null accepts all.
  FolderTables(WeightMap weights, std::optional<int64_t> rest, std::string index,
               std::map<FileId, int64_t> numbers, std::function<bool(std::string_view)> wants);

  const WeightMap& weights() const { return weights_; }

  // Notes the tensors that do not count. Errors: kMismatch if the file lacks a tensor of the index.
  Result<IndexedFile> Choose(IndexedFile read, const std::string& path) override;

  std::vector<Warning> Warnings() const override;

 private:
  // Of the table of a file.
  struct Note {
    uint64_t bytes = 0;  // of the tensors that the index says are in it
    std::vector<std::string> left_out;
    bool lacks_any = false;  // of the unwanted tensors
  };

  const WeightMap weights_;
  const std::optional<int64_t> rest_;
  const std::string index_;
  const std::map<FileId, int64_t> numbers_;
  const std::function<bool(std::string_view)> wants_;
  std::vector<std::vector<std::string_view>> expected_;  // names, by file
  mutable std::mutex mutex_;
  std::map<int64_t, Note> notes_;  // guarded by mutex_
};

}  // namespace reshard

#endif  // RESHARD_SRC_FULL_FOLDER_TABLES_H_
