// DcpRecords: the instances of known classes in a .metadata (SPEC.md), as flat records. They are
// made while the pickle is read, so that it takes little memory.
//
// Not for use from several threads at once.
#ifndef RESHARD_FORMAT_DCP_DCP_RECORDS_H_
#define RESHARD_FORMAT_DCP_DCP_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/pickle/pickle_expansion.h"
#include "format/pickle/pickle_reader.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// The classes of a .metadata that have a meaning.
enum class DcpClass : uint8_t {
  kOther,
  kMetadata,
  kObject,  // BytesStorageMetadata
  kSize,    // torch.Size
  kProperties,
  kChunk,
  kTensor,
  kIndex,
  kItem,  // _StorageInfo
};

DcpClass DcpClassOf(const PickleGlobal& global);

class DcpRecords {
 public:
  // Some of the numbers, side by side; at most kMaxDims.
  struct Numbers {
    static constexpr uint64_t kCounts = kMaxDims + 1;

    uint64_t packed = 0;  // there are many

    static Numbers Of(size_t first, size_t count) { return {first * kCounts + count}; }
    size_t first() const { return packed / kCounts; }
    size_t count() const { return packed % kCounts; }
  };
  // TensorProperties. Equal ones are one record.
  struct Properties {
    std::optional<DType> dtype;
    std::string unsupported;  // why there is none

    friend auto operator<=>(const Properties&, const Properties&) = default;
  };
  // ChunkStorageMetadata.
  struct Chunk {
    Numbers offsets;
    Numbers sizes;
  };
  // TensorStorageMetadata.
  struct Tensor {
    size_t properties = 0;
    Numbers size;
    size_t first_chunk = 0;  // a place in chunks_of_tensors()
    size_t chunk_count = 0;
  };
  // MetadataIndex.
  struct Index {
    std::string_view name;  // a view into the pickle
    Numbers offsets;        // none of an object
  };
  // _StorageInfo.
  struct Item {
    uint32_t file = 0;
    uint32_t transform = 0;  // a place in transforms()
    ByteRange range;
  };

  // For a pickle of `bytes`. `expansion` has to stay.
  DcpRecords(size_t bytes, PickleExpansion& expansion)
      : most_chunks_(bytes), expansion_(expansion) {}

  // A PickleCollapse. Errors: kCorrupt, without a path, for an unexpected state.
  Result<std::optional<uint64_t>> Collapse(const Pickle& pickle, const PickleValue& node);

  // The pickle is not needed any more, nor what has views into it.
  void ForgetTexts();

  // Returns the record that a value is, or null if it is of another class.
  const Tensor* AsTensor(const PickleValue& value) const;
  const Index* AsIndex(const PickleValue& value) const;

  // The same for an Item: its place. There are fewer than bytes of the largest pickle.
  static std::optional<uint32_t> ItemPlace(const PickleValue& value);
  const Item& item(uint32_t place) const { return items_[place]; }

  std::span<const int64_t> At(const Numbers& numbers) const {
    return std::span(numbers_).subspan(numbers.first(), numbers.count());
  }
  // All numbers. The records refer to them.
  std::vector<int64_t> TakeNumbers() { return std::move(numbers_); }
  const Properties& properties(const Tensor& tensor) const {
    return *properties_[tensor.properties];
  }
  // By the places from Tensor::first_chunk on.
  const Chunk& chunk(size_t place) const { return chunks_[chunks_of_tensors_[place]]; }
  std::vector<std::string> TakeFiles() { return std::move(files_); }
  // How the bytes of items were changed on their way, by their writer; the first is "", not at all.
  const std::vector<std::string>& transforms() const { return transforms_; }

 private:
  static constexpr size_t kRecent = 4096;

  // A record number is the class and a place in its list. Of a torch.Size it is the class and the
  // place of its numbers.
  static uint64_t RecordOf(DcpClass kind, uint64_t place);
  static std::optional<size_t> PlaceOf(DcpClass kind, const PickleValue& value);

  DcpClass ClassOf(const Pickle& pickle, const PickleValue& node);
  Result<uint64_t> TakeSize(const Pickle& pickle, const PickleValue& node);
  Result<uint64_t> TakeProperties(const Pickle& pickle, const PickleValue& state);
  Result<uint64_t> TakeChunk(const Pickle& pickle, const PickleValue& state);
  Result<uint64_t> TakeTensor(const Pickle& pickle, const PickleValue& state);
  Result<uint64_t> TakeIndex(const Pickle& pickle, const PickleValue& state);
  Result<uint64_t> TakeItem(const Pickle& pickle, const PickleValue& state);

  // Returns the place of equal numbers. Errors: kResourceExhausted.
  Result<Numbers> Keep(std::span<const int64_t> numbers);
  // Returns the numbers of a torch.Size, a tuple or a list.
  Result<Numbers> NumbersOf(const Pickle& pickle, const PickleValue* value, std::string_view what);
  // Returns the number of the file at a path.
  Result<uint32_t> FileOf(std::string_view path);
  Result<uint32_t> TransformOf(const Pickle& pickle, const PickleValue* value);

  // Of all tensors; some may share a list, which takes no bytes.
  const size_t most_chunks_;
  PickleExpansion& expansion_;
  std::vector<DcpClass> classes_;  // by number of a global
  std::vector<int64_t> numbers_;
  // Some that were kept, by hash: many chunks have the same offsets and sizes.
  std::vector<Numbers> recent_ = std::vector<Numbers>(kRecent);
  std::vector<int64_t> list_;  // that is being read
  std::map<Properties, size_t> known_properties_;
  std::vector<const Properties*> properties_;
  std::vector<Chunk> chunks_;
  std::vector<uint32_t> chunks_of_tensors_;
  std::vector<Tensor> tensors_;
  std::vector<Index> indexes_;
  std::vector<Item> items_;
  std::vector<std::string> files_;
  std::unordered_map<std::string_view, uint32_t> known_files_;  // by path, a view into the pickle
  std::unordered_map<const char*, uint32_t> files_by_place_;    // of a long text in the pickle
  std::vector<std::string> transforms_ = {""};
  std::unordered_map<std::string, uint32_t> known_transforms_ = {{"", 0}};
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_DCP_DCP_RECORDS_H_
