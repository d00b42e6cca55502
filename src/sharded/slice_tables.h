// SliceTables: checks that the tables of files have the slices that a metadata file states.
//
// Thread-safe.
#ifndef RESHARD_SRC_SHARDED_SLICE_TABLES_H_
#define RESHARD_SRC_SHARDED_SLICE_TABLES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/source/found_source.h"
#include "src/source/indexed_file.h"
#include "src/source/part_list.h"

namespace reshard {

class SliceTables final : public FamilyTables {
 public:
  // `parts`, which has to outlive this, has the slices of files by their numbers, `numbers`.
  // `metadata` is the path of the file that states them, for messages. Tensors that `wants` rejects
  // may be missing; null accepts all.
  SliceTables(const PartList& parts, std::map<FileId, int64_t> numbers, std::string metadata,
              std::function<bool(std::string_view)> wants);

  // Returns `read` as it is. Errors: kMismatch if it lacks a slice, or has it with another dtype or
  // shape.
  Result<IndexedFile> Choose(IndexedFile read, const std::string& path) override;

  // Names the arrays that the metadata does not state.
  std::vector<Warning> Warnings() const override;

 private:
  const PartList& parts_;
  const std::map<FileId, int64_t> numbers_;
  const std::string metadata_;
  const std::function<bool(std::string_view)> wants_;
  std::vector<std::vector<uint32_t>> expected_;  // places in parts_.tensors(), by number
  mutable std::mutex mutex_;
  std::map<int64_t, std::vector<std::string>> left_out_;  // by number; guarded by mutex_
};

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_SLICE_TABLES_H_
