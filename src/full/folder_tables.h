// FolderTables: the tables of the files of a folder of whole tensors, as its index says: a file has
// what the index says is in it, whatever else it holds.
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

#include "format/weight_map/weight_map_codec.h"
#include "reshard/status.h"
#include "src/source/found_source.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Returns `read` with the arrays that `new_names` has under these names; it maps names of the file
// to new ones. `path` is for messages. Errors: kMismatch where two would have one name.
Result<IndexedFile> WithNames(IndexedFile read, const std::map<std::string, std::string>& new_names,
                              const std::string& path);

// Gives the weights of the index `index` that `new_names` has these names; a name that is new
// already stays. Errors: as WithNames.
Status RenameWeights(const std::map<std::string, std::string>& new_names, const std::string& index,
                     WeightMap& weights);

class FolderTables final : public FamilyTables {
 public:
  // `weights` are in the files that they name by number; what is in none of them counts where it is
  // in that of `rest`. `index` is for messages. `numbers` are those of all files. What `wants`,
  // where it is not null, does not take may be missing.
  FolderTables(WeightMap weights, std::optional<int64_t> rest, std::string index,
               std::map<FileId, int64_t> numbers, std::function<bool(std::string_view)> wants);

  const WeightMap& weights() const { return weights_; }

  // Notes what does not count. Errors: kMismatch where the file lacks what the index says.
  Result<IndexedFile> Choose(IndexedFile read, const std::string& path) override;

  std::vector<Warning> Warnings() const override;

 private:
  // Of the table of a file.
  struct Note {
    uint64_t bytes = 0;  // of the tensors that the index says are in it
    std::vector<std::string> left_out;
    bool lacks_any = false;  // of what is not wanted
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
