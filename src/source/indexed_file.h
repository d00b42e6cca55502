// IndexedFile: one checkpoint file and what it holds, whichever container it is.
//
// Immutable once made, so any number of threads may read it.
#ifndef RESHARD_SRC_SOURCE_INDEXED_FILE_H_
#define RESHARD_SRC_SOURCE_INDEXED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/base/memory_check.h"
#include "src/io/source_files.h"

namespace reshard {

class IndexedFile {
 public:
  IndexedFile(FileId file, uint64_t file_size, TableOfFile read)
      : file_(file),
        file_size_(file_size),
        crc_(std::move(read.crc)),
        states_redundancy_(read.states_redundancy),
        sharding_info_(std::move(read.sharding_info)),
        table_(std::move(read.table)) {}

  IndexedFile(IndexedFile&&) = default;
  IndexedFile& operator=(IndexedFile&&) = default;
  IndexedFile(const IndexedFile&) = delete;
  IndexedFile& operator=(const IndexedFile&) = delete;

  FileId file() const { return file_; }
  uint64_t file_size() const { return file_size_; }
  // In file order.
  const std::vector<StoredArray>& arrays() const { return table_->arrays(); }
  // Returns the one of this name, or null.
  const StoredArray* Find(std::string_view name) const { return table_->Find(name); }
  // As above; what is returned keeps the table.
  std::shared_ptr<const StoredArray> FindShared(std::string_view name) const {
    return {table_, Find(name)};
  }
  const FileTable& table() const { return *table_; }
  // The CRC-32 that the file states of itself, where it does. It is not checked here.
  const std::optional<StatedCrc>& crc() const { return crc_; }
  bool states_redundancy() const { return states_redundancy_; }        // TableOfFile
  const std::string& sharding_info() const { return sharding_info_; }  // TableOfFile
  // Whether who indexes such a file from a disk keeps neither it nor a processor busy.
  bool IsWaitedFor() const;
  // About the bytes of memory that all this takes, those of its table included.
  size_t memory() const {
    return sizeof(IndexedFile) + sharding_info_.capacity() + table_->memory();
  }

  // Its table, which other files may have as well.
  const std::shared_ptr<const FileTable>& shared_table() const { return table_; }
  // Refers to `table`, which is equal to its own, instead.
  void Share(std::shared_ptr<const FileTable> table) { table_ = std::move(table); }

 private:
  FileId file_ = 0;
  uint64_t file_size_ = 0;
  std::optional<StatedCrc> crc_;
  bool states_redundancy_ = false;
  std::string sharding_info_;
  std::shared_ptr<const FileTable> table_;
};

// Returns what a parser reads from; `reader` and `path` outlive it.
FileBytes BytesOf(SourceReader& reader, std::string_view path);

// Looks at the file's first bytes, which tell its container, and has that one's reader read the
// table. Reads headers only. Where all is as `like` says, the table of another file, which may be
// null, that is the table. Any thread.
// Errors: kCorrupt (path, parameter, offset, expected, found), kUnsupported for an encrypted
// file without a key, kResourceExhausted beyond kMaxTableBytes, and those of SourceFiles and of
// `memory`, which is asked now and then.
Result<IndexedFile> ReadFileTable(SourceFiles& files, FileId file, const MemoryCheck& memory = {},
                                  const std::shared_ptr<const FileTable>& like = nullptr);

// As above, of one of several files of a set: one without a byte is the .ckpt file of a rank
// without parameters.
Result<IndexedFile> ReadTableInSet(SourceFiles& files, FileId file, const MemoryCheck& memory = {},
                                   const std::shared_ptr<const FileTable>& like = nullptr);

// Returns the bytes of which the file states a CRC-32, if it does: what its table's reader returns
// as StatedCrc::covered. Indexes only files that may state one (Container::covered_by_crc); an
// encrypted file states none. Any thread. Errors: kCorrupt for a number that is no CRC-32; those of
// SourceFiles.
Result<std::optional<ByteRange>> CoveredByCrc(SourceFiles& files, FileId file);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_INDEXED_FILE_H_
