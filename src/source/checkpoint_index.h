// CheckpointIndex: where each parameter of one checkpoint file lies.
//
// Made by hopping from header to header; content is never touched. Immutable once made, so any
// number of threads may read it.
#ifndef RESHARD_SRC_SOURCE_CHECKPOINT_INDEX_H_
#define RESHARD_SRC_SOURCE_CHECKPOINT_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "reshard/parameter.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/io/source_files.h"
#include "src/source/parameter_table.h"

namespace reshard {

class CheckpointIndex {
 public:
  // Indexes a file. Reads its first page, those that hold headers, and its last 17 bytes; where
  // headers lie close together, ahead of them.
  // Errors: kCorrupt (path, parameter, offset, expected, found), kUnsupported for an encrypted or a
  // safetensors file, kResourceExhausted beyond kMaxIndexBytes, and those of SourceFiles and
  // of `memory`, which is asked now and then.
  static Result<CheckpointIndex> Make(SourceFiles& files, FileId file,
                                      const MemoryCheck& memory = {});

  // The index of a file whose parameters are known.
  CheckpointIndex(FileId file, uint64_t file_size, ParameterTable table);

  CheckpointIndex(CheckpointIndex&&) = default;
  CheckpointIndex& operator=(CheckpointIndex&&) = default;
  CheckpointIndex(const CheckpointIndex&) = delete;
  CheckpointIndex& operator=(const CheckpointIndex&) = delete;

  FileId file() const { return file_; }
  uint64_t file_size() const { return file_size_; }
  // In file order.
  const std::vector<ParameterInfo>& parameters() const { return table_->parameters(); }
  // Returns the parameter of this name, or null.
  const ParameterInfo* Find(std::string_view name) const { return table_->Find(name); }
  const ParameterTable& table() const { return *table_; }
  // The CRC-32 that the trailer states, where the file has one. It is not checked here.
  const std::optional<uint64_t>& crc() const { return crc_; }
  // About the bytes of memory that the index holds, those of its table included.
  size_t memory() const { return sizeof(CheckpointIndex) + table_->memory(); }

  // Refers to `table`, which is equal to its own and has to live as long, instead of its own, which
  // it returns.
  std::unique_ptr<const ParameterTable> Share(const ParameterTable* table);

 private:
  FileId file_ = 0;
  uint64_t file_size_ = 0;
  std::optional<uint64_t> crc_;
  std::unique_ptr<const ParameterTable> own_;  // null where the table is another's
  const ParameterTable* table_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_CHECKPOINT_INDEX_H_
