// FileTable: the arrays of a checkpoint file, in file order and by name. TableBuilder makes one.
// TableOfFile is the result of reading a file.
//
// A table has no facts about a single file only. Files of a stage ordinarily have equal tables, so
// a single table may serve many files (TableCache). Immutable, so any number of threads may read
// it.
#ifndef RESHARD_FORMAT_CONTAINER_FILE_TABLE_H_
#define RESHARD_FORMAT_CONTAINER_FILE_TABLE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/container.h"
#include "format/container/device_mesh.h"
#include "reshard/byte_range.h"
#include "reshard/tensor.h"
#include "src/base/name_arena.h"

namespace reshard {

// The most memory for the table of a file: some 700,000 arrays in one piece, or 2,000,000 pieces of
// one array.
inline constexpr size_t kMaxTableBytes = size_t{128} << 20;

// Elements in a few blocks of memory, at fixed addresses.
template <typename T>
class KeptInBlocks {
 public:
  // Returns a copy of `elements`, which lie side by side, and lives as long as this.
  std::span<const T> Keep(std::span<const T> elements) {
    constexpr size_t kLeastBlock = 4;
    constexpr size_t kMostBlock = 4096;
    if (elements.empty()) return {};
    // A block never grows.
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < elements.size()) {
      const size_t before = blocks_.empty() ? 0 : blocks_.back().capacity();
      const size_t capacity =
          std::max(elements.size(), std::clamp(2 * before, kLeastBlock, kMostBlock));
      blocks_.emplace_back().reserve(capacity);
      memory_ += capacity * sizeof(T) + kBlockCost;
    }
    std::vector<T>& block = blocks_.back();
    block.insert(block.end(), elements.begin(), elements.end());
    return std::span(block).last(elements.size());
  }

  // About the bytes of memory that it takes, without allocations of the elements.
  size_t memory() const { return memory_; }

 private:
  static constexpr size_t kBlockCost = 64;

  std::vector<std::vector<T>> blocks_;
  size_t memory_ = 0;
};

class FileTable {
 public:
  FileTable(const FileTable&) = delete;
  FileTable& operator=(const FileTable&) = delete;

  // A number that is unique among all tables of this process, past ones included.
  uint64_t id() const { return id_; }
  const Container& container() const { return *container_; }
  // In file order. They refer to data of the table.
  const std::vector<StoredArray>& arrays() const { return arrays_; }
  // The places in arrays() in the order of their names.
  const std::vector<uint32_t>& by_name() const { return by_name_; }
  // Returns the array of this name, or null.
  const StoredArray* Find(std::string_view name) const;
  // As above, for callers that ask in file order: tries place `next` of arrays() first, and sets it
  // to the place behind the found array.
  const StoredArray* Find(std::string_view name, size_t& next) const;
  // The metadata of its files, which is the same for equal tables. It lacks the CRC, marks of
  // dtypes, and the values of keys with IsOfOwnLayout. Never null.
  const std::shared_ptr<const FileStrings>& metadata() const { return metadata_; }
  // Returns two arrays with the same name, in file order, if there are any; readers refuse them.
  std::optional<std::pair<const StoredArray*, const StoredArray*>> FindTwice() const;
  // About the bytes of memory that the table holds.
  size_t memory() const { return memory_; }

  // A hash of names and places: equal tables have equal ones.
  size_t hash() const { return hash_; }
  friend bool operator==(const FileTable& a, const FileTable& b) {
    return a.container_ == b.container_ && a.arrays_ == b.arrays_ &&
           (a.metadata_ == b.metadata_ || *a.metadata_ == *b.metadata_);
  }

 private:
  friend class TableBuilder;
  explicit FileTable(const Container& container);

  // The data of the arrays: names and ranges side by side; neighbours with equal shapes share one.
  struct Parts {
    NameArena names;
    KeptInBlocks<Shape> shapes;
    KeptInBlocks<ByteRange> ranges;
    KeptInBlocks<StoredArray::MapTensorPart> map_tensors;
  };

  uint64_t id_;
  const Container* container_;
  Parts parts_;
  std::vector<StoredArray> arrays_;
  std::vector<uint32_t> by_name_;
  std::shared_ptr<const FileStrings> metadata_;
  size_t memory_ = 0;
  size_t hash_ = 0;
};

// TableBuilder: makes a table of arrays that are added in file order. An array takes about 100
// bytes and its name until the table is made, and then some 50 more, without an allocation for each
// array. Not thread-safe.
class TableBuilder {
 public:
  explicit TableBuilder(const Container& container);

  // Copies the data of `array`. It has a content for each of `framed`, or is a MapTensor. Its bytes
  // are those of its content, or of its parts. If it has no content, the places in `framed` are not
  // known yet, and its bytes follow from dtype and shape, which have to fit.
  void Add(const StoredArray& array);

  void SetMetadata(std::shared_ptr<const FileStrings> metadata);

  size_t size() const { return entries_.size(); }
  // The array with this number in the order of Add. It refers to data of the builder.
  StoredArray At(size_t number) const { return ArrayOf(entries_[number]); }
  void SetDType(size_t number, DType dtype) { entries_[number].dtype = dtype; }
  // Puts the arrays in the order of their contents; each has exactly one. Of arrays that begin at
  // the same offset, those without bytes come first, in the order in which they were added.
  void SortByContent();

  // About the bytes of memory that it holds and, once made, the table.
  size_t memory() const;
  // The additional memory for making the table.
  size_t BytesToFinish() const { return entries_.size() * kFinished; }
  std::shared_ptr<const FileTable> Finish() &&;

 private:
  // A StoredArray in less.
  struct Entry {
    const char* name = nullptr;
    const Shape* shape = nullptr;
    const ByteRange* framed = nullptr;
    uint32_t name_bytes = 0;
    uint32_t framed_count = 0;
    uint32_t map_tensor = 0;  // a place in map_tensors_, of a MapTensor
    ArrayKind kind = ArrayKind::kTensor;
    DType dtype = DType::kFloat32;
    bool has_contents = false;  // as many, behind `framed`; else these are the same
    bool is_placed = true;      // whether the places of contents are known
  };
  // The shapes of a model's layer, and some more.
  static constexpr size_t kRecentShapes = 16;
  static constexpr size_t kFinished = sizeof(StoredArray) + sizeof(uint32_t);

  StoredArray ArrayOf(const Entry& entry) const;
  const Shape* KeepShape(const Shape& shape);

  std::shared_ptr<FileTable> table_;
  std::deque<Entry> entries_;
  std::vector<std::span<const StoredArray::MapTensorPart>> map_tensors_;
  std::vector<ByteRange> ranges_;                        // of the array that is being added
  std::array<const Shape*, kRecentShapes> recent_ = {};  // the last one that was used comes first
  size_t more_memory_ = 0;  // that shapes and parts of MapTensors allocate
};

// A CRC-32 that a file states of itself.
struct StatedCrc {
  // The bytes that the number covers.
  enum class Of {
    kBytes,   // `covered` as it stands in the file
    kArrays,  // the arrays' names and contents, by name; `covered` has the contents
  };

  uint64_t value = 0;
  ByteRange covered;
  // In file order; some writers leave these bytes out of the number.
  std::vector<ByteRange> may_lack;
  Of of = Of::kBytes;
};

// A CRC-32 that a file states of a part of its contents, as a zip does for each member.
struct ContentCrc {
  ByteRange covered;
  uint32_t value = 0;
};

// What a file states about the places of its arrays in their tensors. Empty: nothing. Texts are not
// parsed.
struct StatedShards {
  std::string begins;  // the metadata DCP_SHARDING_INFO
  std::string set;     // the metadata reshard: full shapes, and how many files the set has
  std::vector<MeshTensor> mesh = {};  // DTensors, in the order of their file

  size_t memory() const;
};

// A value of a file, other than a tensor, that holds contents of tensors that are not read.
struct BesideObject {
  std::string name;
  std::string kind;  // its class
  uint64_t bytes = 0;
};

// What a file holds beside its arrays.
struct BesideArrays {
  uint64_t values = 0;  // that are not tensors; for the program that wrote it alone
  std::vector<BesideObject> objects = {};  // of those
  std::vector<UnreadTensor> unread = {};   // in the order of the file

  size_t memory() const;
};

// The result of reading a file: its table, and facts about this file alone.
struct TableOfFile {
  // Another file's table, if the reader was given one that is equal.
  std::shared_ptr<const FileTable> table;
  std::optional<StatedCrc> crc;  // of the file; not checked
  // Whether the file's metadata states that redundancy was or was not removed from its set.
  bool states_redundancy = false;
  StatedShards shards = {};
  std::vector<ContentCrc> content_crcs = {};  // in file order, disjoint; not checked
  BesideArrays beside = {};
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_FILE_TABLE_H_
