// IndexedFile: where each parameter of one checkpoint file lies.
//
// Made by hopping from header to header; content is never touched. Immutable once made, so any
// number of threads may read it.
#ifndef RESHARD_SRC_SOURCE_INDEXED_FILE_H_
#define RESHARD_SRC_SOURCE_INDEXED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/stored_array.h"
#include "src/base/memory_check.h"
#include "src/io/source_files.h"
#include "src/source/file_table.h"

namespace reshard {

class IndexedFile {
 public:
  // Indexes a file. Reads its first page, those that hold headers, and its last 17 bytes; where
  // headers lie close together, ahead of them.
  // Errors: kCorrupt (path, parameter, offset, expected, found), kUnsupported for an encrypted or a
  // safetensors file, kResourceExhausted beyond kMaxIndexBytes, and those of SourceFiles and
  // of `memory`, which is asked now and then.
  static Result<IndexedFile> Make(SourceFiles& files, FileId file, const MemoryCheck& memory = {});

  // The index of a file whose parameters are known.
  IndexedFile(FileId file, uint64_t file_size, FileTable table);

  IndexedFile(IndexedFile&&) = default;
  IndexedFile& operator=(IndexedFile&&) = default;
  IndexedFile(const IndexedFile&) = delete;
  IndexedFile& operator=(const IndexedFile&) = delete;

  FileId file() const { return file_; }
  uint64_t file_size() const { return file_size_; }
  // In file order.
  const std::vector<StoredArray>& parameters() const { return table_->parameters(); }
  // Returns the parameter of this name, or null.
  const StoredArray* Find(std::string_view name) const { return table_->Find(name); }
  const FileTable& table() const { return *table_; }
  // The CRC-32 that the trailer states, where the file has one. It is not checked here.
  const std::optional<uint64_t>& crc() const { return crc_; }
  // About the bytes of memory that the index holds, those of its table included.
  size_t memory() const { return sizeof(IndexedFile) + table_->memory(); }

  // Refers to `table`, which is equal to its own and has to live as long, instead of its own, which
  // it returns.
  std::unique_ptr<const FileTable> Share(const FileTable* table);

 private:
  FileId file_ = 0;
  uint64_t file_size_ = 0;
  std::optional<uint64_t> crc_;
  std::unique_ptr<const FileTable> own_;  // null where the table is another's
  const FileTable* table_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_INDEXED_FILE_H_
