// IndexedFile: one checkpoint file and its table, for any container.
//
// Immutable once made, so any number of threads may read it.
#ifndef RESHARD_SRC_SOURCE_INDEXED_FILE_H_
#define RESHARD_SRC_SOURCE_INDEXED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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
        shards_(std::move(read.shards)),
        content_crcs_(std::move(read.content_crcs)),
        beside_(std::move(read.beside)),
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
  // As above; the result keeps the table alive.
  std::shared_ptr<const StoredArray> FindShared(std::string_view name) const {
    return {table_, Find(name)};
  }
  const FileTable& table() const { return *table_; }
  // The CRC-32 that the file states about itself, if it does. It is not checked here.
  const std::optional<StatedCrc>& crc() const { return crc_; }
  // The same of parts of its contents.
  const std::vector<ContentCrc>& content_crcs() const { return content_crcs_; }
  bool states_crc() const { return crc_ || !content_crcs_.empty(); }
  bool states_redundancy() const { return states_redundancy_; }  // TableOfFile
  const BesideArrays& beside() const { return beside_; }
  void set_beside(BesideArrays beside) { beside_ = std::move(beside); }
  const StatedShards& shards() const { return shards_; }
  // Whether indexing such a file from a disk mostly waits, without keeping disk or processor busy.
  bool IsWaitedFor() const;
  // About the bytes of memory of this object, its table included.
  size_t memory() const {
    return sizeof(IndexedFile) + shards_.memory() + content_crcs_.capacity() * sizeof(ContentCrc) +
           beside_.memory() + table_->memory();
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
  StatedShards shards_;
  std::vector<ContentCrc> content_crcs_;
  BesideArrays beside_;
  std::shared_ptr<const FileTable> table_;
};

// Returns the bytes for a parser; `reader` and `path` outlive it.
FileBytes BytesOf(SourceReader& reader, std::string_view path);

// Finds the container from the file's first bytes, and reads the table with the container's reader.
// Reads headers only. `like` is the table of another file, or null. If both tables are equal,
// `like` is the result. Any thread.
// Errors:
//   kCorrupt: names path, parameter, offset, expected and found values
//   kUnsupported: an encrypted file without a key
//   kResourceExhausted: beyond kMaxTableBytes
//   as SourceFiles and of `memory`, which is called now and then
Result<IndexedFile> ReadFileTable(SourceFiles& files, FileId file, const MemoryCheck& memory = {},
                                  const std::shared_ptr<const FileTable>& like = nullptr);

// As above, for a file of a set: an empty file is the .ckpt file of a rank without parameters.
Result<IndexedFile> ReadTableInSet(SourceFiles& files, FileId file, const MemoryCheck& memory = {},
                                   const std::shared_ptr<const FileTable>& like = nullptr);

// Fails with kUnsupported if tensors of `file` cannot be read and `wants` takes them, by their
// names in the file; `path` is for messages. Errors: also as `wants`.
Status CheckNoneUnread(const IndexedFile& file, std::string_view path,
                       const std::function<Result<bool>(const std::string& name)>& wants);

// What a file at a path, for messages, holds beside its arrays.
struct BesideOfFile {
  std::string path;
  const BesideArrays* beside = nullptr;
};
// Returns warnings of the values of files that are not read.
std::vector<Warning> WarningsOfOthers(const std::vector<BesideOfFile>& files);
// Returns a warning of tensors that cannot be read; there is at least one. `source` begins it.
Warning WarningOfUnread(std::string_view source, const std::vector<UnreadTensor>& unread);

// Returns how many bytes the file's CRC-32s cover; no value if it states none. Indexes only files
// that may state one (Container::covered_by_crc). An encrypted file states none. Any thread.
// Errors: kCorrupt for an invalid CRC-32; as SourceFiles.
Result<std::optional<uint64_t>> CoveredByCrc(SourceFiles& files, FileId file);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_INDEXED_FILE_H_
