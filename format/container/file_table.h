// FileTable: what a checkpoint file holds, in file order and by name; TableOfFile: what reading a
// file yields.
//
// A table says nothing of one file only: files of one stage ordinarily have equal tables, so that
// one may stand for many (TableCache). Immutable, so any number of threads may read it.
#ifndef RESHARD_FORMAT_CONTAINER_FILE_TABLE_H_
#define RESHARD_FORMAT_CONTAINER_FILE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "format/container/container.h"
#include "reshard/byte_range.h"
#include "reshard/tensor.h"

namespace reshard {

// The most memory that the table of one file may take: some 300,000 arrays in one piece, or
// 2,000,000 pieces of one array.
inline constexpr size_t kMaxTableBytes = size_t{128} << 20;

// Returns the places in `arrays` in the order of their names, equal names in file order.
std::vector<uint32_t> SortByName(const std::vector<StoredArray>& arrays);

class FileTable {
 public:
  // `by_name` is what SortByName returns; no two names are equal. `memory`: about the bytes that
  // both take, spare capacity included.
  FileTable(Container container, std::vector<StoredArray> arrays, std::vector<uint32_t> by_name,
            size_t memory);

  // A number that no other table of this process has or had.
  uint64_t id() const { return id_; }
  Container container() const { return container_; }
  // In file order.
  const std::vector<StoredArray>& arrays() const { return arrays_; }
  // Returns the array of this name, or null.
  const StoredArray* Find(std::string_view name) const;
  // As above, for one who asks in file order: looks at place `next` of arrays() first, and sets it
  // to the place behind what was found.
  const StoredArray* Find(std::string_view name, size_t& next) const;
  // About the bytes of memory that the table holds.
  size_t memory() const { return memory_; }

  // A hash of names and places: equal tables have equal ones.
  size_t hash() const { return hash_; }
  friend bool operator==(const FileTable& a, const FileTable& b) {
    return a.container_ == b.container_ && a.arrays_ == b.arrays_;
  }

 private:
  uint64_t id_;
  Container container_;
  std::vector<StoredArray> arrays_;
  std::vector<uint32_t> by_name_;
  size_t memory_;
  size_t hash_;
};

// A CRC-32 that a file states of itself.
struct StatedCrc {
  // What the number is of.
  enum class Of {
    kBytes,   // `covered` as it stands in the file
    kArrays,  // the arrays' names and contents, by name; `covered` is where the contents lie
  };

  uint64_t value = 0;
  ByteRange covered;
  // In file order; some writers leave these bytes out of the number.
  std::vector<ByteRange> may_lack;
  Of of = Of::kBytes;
};

// What reading a file yields: its table, and what is the file's own.
struct TableOfFile {
  // Another file's, where the reader was given that and they are equal.
  std::shared_ptr<const FileTable> table;
  std::optional<StatedCrc> crc;  // not checked
  // Whether metadata says of the file if redundancy was removed from its set.
  bool states_redundancy = false;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_FILE_TABLE_H_
