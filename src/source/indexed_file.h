// IndexedFile: one checkpoint file and its table.
//
// Immutable once made, so any number of threads may read it.
#ifndef RESHARD_SRC_SOURCE_INDEXED_FILE_H_
#define RESHARD_SRC_SOURCE_INDEXED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"

namespace reshard {

class IndexedFile {
 public:
  IndexedFile(FileId file, uint64_t file_size, TableOfFile read)
      : file_(file),
        file_size_(file_size),
        crc_(std::move(read.crc)),
        own_(std::make_unique<const FileTable>(std::move(read.table))),
        table_(own_.get()) {}

  IndexedFile(IndexedFile&&) = default;
  IndexedFile& operator=(IndexedFile&&) = default;
  IndexedFile(const IndexedFile&) = delete;
  IndexedFile& operator=(const IndexedFile&) = delete;

  FileId file() const { return file_; }
  uint64_t file_size() const { return file_size_; }
  // In file order.
  const std::vector<StoredArray>& parameters() const { return table_->arrays(); }
  // Returns the one of this name, or null.
  const StoredArray* Find(std::string_view name) const { return table_->Find(name); }
  const FileTable& table() const { return *table_; }
  // The CRC-32 that the file states of itself, where it does. It is not checked here.
  const std::optional<StatedCrc>& crc() const { return crc_; }
  // About the bytes of memory that all this takes, those of its table included.
  size_t memory() const { return sizeof(IndexedFile) + table_->memory(); }

  // Refers to `table`, which is equal to its own and has to live as long, instead of its own, which
  // it returns.
  std::unique_ptr<const FileTable> Share(const FileTable* table) {
    table_ = table;
    return std::move(own_);
  }

 private:
  FileId file_ = 0;
  uint64_t file_size_ = 0;
  std::optional<StatedCrc> crc_;
  std::unique_ptr<const FileTable> own_;  // null where the table is another's
  const FileTable* table_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_INDEXED_FILE_H_
