// CheckpointIndex: where each parameter of one checkpoint file lies.
//
// Made by hopping from header to header; content is never touched. Immutable once made, so any
// number of threads may read it.
#ifndef RESHARD_SRC_INDEX_CHECKPOINT_INDEX_H_
#define RESHARD_SRC_INDEX_CHECKPOINT_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reshard/parameter.h"
#include "reshard/status.h"
#include "src/source/source_files.h"

namespace reshard {

class CheckpointIndex {
 public:
  // Indexes a file. Reads its first page, those that hold headers, and its last 17 bytes.
  // Errors: kCorrupt (path, parameter, offset, expected, found), kUnsupported for an encrypted or a
  // safetensors file, kResourceExhausted beyond kMaxIndexBytes, and those of SourceFiles.
  static Result<CheckpointIndex> Make(SourceFiles& files, FileId file);

  CheckpointIndex(CheckpointIndex&&) = default;
  CheckpointIndex& operator=(CheckpointIndex&&) = default;
  CheckpointIndex(const CheckpointIndex&) = delete;
  CheckpointIndex& operator=(const CheckpointIndex&) = delete;

  FileId file() const { return file_; }
  uint64_t file_size() const { return file_size_; }
  // In file order.
  const std::vector<ParameterInfo>& parameters() const { return parameters_; }
  // Returns the parameter of this name, or null.
  const ParameterInfo* Find(std::string_view name) const;
  // The CRC-32 that the trailer states, where the file has one. It is not checked here.
  const std::optional<uint64_t>& crc() const { return crc_; }
  // About the bytes of memory that the index holds.
  size_t memory() const { return memory_; }

 private:
  CheckpointIndex() = default;

  FileId file_ = 0;
  uint64_t file_size_ = 0;
  std::vector<ParameterInfo> parameters_;
  std::vector<uint32_t> by_name_;  // places in parameters_, in the order of their names
  std::optional<uint64_t> crc_;
  size_t memory_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_INDEX_CHECKPOINT_INDEX_H_
