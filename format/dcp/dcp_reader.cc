#include "format/dcp/dcp_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "format/dcp/dcp_records.h"
#include "format/pickle/pickle_expansion.h"
#include "format/pickle/pickle_reader.h"
#include "reshard/parameters.h"
#include "src/base/json_string.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

// Joins the tables of a .metadata, and proves that they fit.
class DcpResolver {
 public:
  DcpResolver(DcpRecords& records, PickleExpansion& expansion, const MemoryCheck& memory)
      : records_(records), expansion_(expansion), memory_(memory) {}

  // Takes the tables of a pickle, which is not needed after this.
  Status TakeTables(const Pickle& pickle) {
    RESHARD_ASSIGN_OR_RETURN(const PickleValue* const names,
                             TableOf(pickle, "state_dict_metadata"));
    RESHARD_ASSIGN_OR_RETURN(const PickleValue* const items, TableOf(pickle, "storage_data"));
    RESHARD_RETURN_IF_ERROR(TakeNames(pickle, *names));
    RESHARD_RETURN_IF_ERROR(TakeItems(pickle, *items));
    numbers_.clear();
    by_place_.clear();
    return {};
  }

  // Of the tables that were taken.
  Result<DcpMetadata> Resolve() && {
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_, chunk_count_ * sizeof(DcpChunk)));
    made_.chunks.reserve(chunk_count_);
    for (size_t i = 0; i < sources_.size(); ++i) RESHARD_RETURN_IF_ERROR(TakeChunks(i));
    made_.files = records_.TakeFiles();
    made_.numbers = records_.TakeNumbers();
    return std::move(made_);
  }

 private:
  // An entry of storage_data for a tensor.
  struct Stored {
    uint32_t tensor = 0;
    uint32_t item = 0;  // a place in the records
    DcpRecords::Numbers offsets;
  };

  template <typename... Values>
  Status Corrupt(const DcpTensor& tensor, fmt::format_string<Values...> text,
                 Values&&... values) const {
    return CorruptError(fmt::format("{}: {}", Quote(tensor.name),
                                    fmt::format(text, std::forward<Values>(values)...)));
  }

  // Returns a dict of the metadata.
  static Result<const PickleValue*> TableOf(const Pickle& pickle, std::string_view member) {
    const PickleValue& top = pickle.top();
    const bool is_metadata =
        top.kind == PickleKind::kNode && DcpClassOf(pickle.Global(top)) == DcpClass::kMetadata;
    if (!is_metadata) {
      return CorruptError(
          fmt::format("top object is {}, expected Metadata; "
                      "nothing was executed",
                      pickle.Shown(top)));
    }
    const PickleValue& state = pickle.State(top);
    const PickleValue* const table =
        state.kind == PickleKind::kDict ? pickle.Find(state, member) : nullptr;
    if (table != nullptr && table->kind == PickleKind::kDict) return table;
    return CorruptError(fmt::format("{}: expected a dict, found {}", member,
                                    table == nullptr ? "none" : pickle.Shown(*table)));
  }

  // Takes state_dict_metadata.
  Status TakeNames(const Pickle& pickle, const PickleValue& table) {
    const std::span<const PickleValue> items = pickle.Items(table);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].kind != PickleKind::kText || !IsUtf8(pickle.Text(items[i]))) {
        return CorruptError(
            fmt::format("state_dict_metadata: expected a name, found {}", pickle.Shown(items[i])));
      }
      const std::string_view name = pickle.Text(items[i]);
      const DcpRecords::Tensor* const tensor = records_.AsTensor(items[i + 1]);
      const auto number = static_cast<uint32_t>(sources_.size());
      if (!numbers_.try_emplace(name, tensor == nullptr ? kNoTensor : number).second) {
        return CorruptError(fmt::format("state_dict_metadata: {} occurs twice", Quote(name)));
      }
      if (tensor != nullptr) {
        RESHARD_RETURN_IF_ERROR(TakeTensor(name, *tensor));
      } else if (IsObject(pickle, items[i + 1])) {
        made_.objects.emplace_back(name);
      } else {
        return UnsupportedError(
            fmt::format("{}: expected TensorStorageMetadata or BytesStorageMetadata, found {}",
                        Quote(name), pickle.Shown(items[i + 1])));
      }
      if (i % kMemoryCheckInterval == 0) RESHARD_RETURN_IF_ERROR(CheckMemory(memory_));
    }
    return {};
  }

  static bool IsObject(const Pickle& pickle, const PickleValue& value) {
    return value.kind == PickleKind::kNode && DcpClassOf(pickle.Global(value)) == DcpClass::kObject;
  }

  Status TakeTensor(std::string_view name, const DcpRecords::Tensor& source) {
    const DcpRecords::Properties& properties = records_.properties(source);
    const std::span<const int64_t> size = records_.At(source.size);
    // Names may share a tensor with all its chunks.
    chunk_count_ += source.chunk_count;
    RESHARD_RETURN_IF_ERROR(expansion_.Take(sizeof(DcpTensor) + size.size_bytes() + name.size() +
                                            properties.unsupported.size() +
                                            source.chunk_count * sizeof(DcpChunk)));
    sources_.push_back(&source);
    DcpTensor& tensor = made_.tensors.emplace_back();
    tensor.name = name;
    tensor.dtype = properties.dtype;
    tensor.unsupported = properties.unsupported;
    tensor.full.assign(size.begin(), size.end());
    if (TensorBytes(tensor.full, tensor.dtype.value_or(DType::kInt8))) return {};
    return Corrupt(tensor, "size {} has too many bytes", FirstNumbers(tensor.full));
  }

  // Takes storage_data. Entries of names without metadata have no meaning.
  Status TakeItems(const Pickle& pickle, const PickleValue& table) {
    const std::span<const PickleValue> items = pickle.Items(table);
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_, items.size() / 2 * sizeof(Stored)));
    stored_.reserve(items.size() / 2);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const DcpRecords::Index* const index = records_.AsIndex(items[i]);
      const std::optional<uint32_t> item = DcpRecords::ItemPlace(items[i + 1]);
      if (index == nullptr || !item) {
        return UnsupportedError(
            fmt::format("storage_data: expected MetadataIndex and _StorageInfo, found {} and {}",
                        pickle.Shown(items[i]), pickle.Shown(items[i + 1])));
      }
      const uint32_t tensor = NumberOf(index->name);
      if (tensor != kNoTensor) stored_.push_back({tensor, *item, index->offsets});
    }
    std::sort(stored_.begin(), stored_.end(),
              [this](const Stored& a, const Stored& b) { return IsBefore(a, b); });
    const auto twice =
        std::adjacent_find(stored_.begin(), stored_.end(),
                           [this](const Stored& a, const Stored& b) { return !IsBefore(a, b); });
    if (twice == stored_.end()) return {};
    return Corrupt(made_.tensors[twice->tensor], "storage_data has the chunk at {} twice",
                   ShownNumbers(twice->offsets));
  }

  // Returns the number of a tensor; kNoTensor for other names. Entries refer to the same texts,
  // which may be long: each is looked up once.
  uint32_t NumberOf(std::string_view name) {
    const auto [place, is_new] = by_place_.try_emplace(name.data(), kNoTensor);
    if (is_new) {
      const auto found = numbers_.find(name);
      if (found != numbers_.end()) place->second = found->second;
    }
    return place->second;
  }

  bool IsBefore(const Stored& a, const Stored& b) const {
    if (a.tensor != b.tensor) return a.tensor < b.tensor;
    const std::span<const int64_t> left = records_.At(a.offsets);
    const std::span<const int64_t> right = records_.At(b.offsets);
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  }

  std::string ShownNumbers(const DcpRecords::Numbers& numbers) const {
    const std::span<const int64_t> all = records_.At(numbers);
    return FirstNumbers({all.begin(), all.end()});
  }

  Status TakeChunks(size_t number) {
    const DcpRecords::Tensor& source = *sources_[number];
    DcpTensor& tensor = made_.tensors[number];
    tensor.first_chunk = made_.chunks.size();
    tensor.chunk_count = source.chunk_count;
    for (size_t i = 0; i < source.chunk_count; ++i) {
      RESHARD_RETURN_IF_ERROR(TakeChunk(number, records_.chunk(source.first_chunk + i)));
      if (++taken_ % kMemoryCheckInterval == 0) RESHARD_RETURN_IF_ERROR(CheckMemory(memory_));
    }
    return {};
  }

  Status TakeChunk(size_t number, const DcpRecords::Chunk& source) {
    DcpTensor& tensor = made_.tensors[number];
    RESHARD_RETURN_IF_ERROR(CheckInside(tensor, source));
    DcpChunk chunk{source.offsets.first(), source.sizes.first(), std::nullopt};
    const std::span<const int64_t> extent = records_.At(source.sizes);
    const bool is_empty = std::find(extent.begin(), extent.end(), 0) != extent.end();
    if (const DcpRecords::Item* const item = ItemAt(number, source.offsets)) {
      chunk.item = DcpItem{item->file, item->range};
      if (item->transform != 0) {
        tensor.dtype.reset();
        tensor.unsupported =
            "bytes that were stored through " + records_.transforms()[item->transform];
      }
    } else if (!is_empty) {
      return Corrupt(tensor, "storage_data has no item for the chunk at {}",
                     ShownNumbers(source.offsets));
    }
    made_.chunks.push_back(chunk);
    return {};
  }

  // Returns the item of the chunk of tensor `number` at `offsets`, or null.
  const DcpRecords::Item* ItemAt(size_t number, const DcpRecords::Numbers& offsets) {
    const Stored wanted{static_cast<uint32_t>(number), 0, offsets};
    const auto is_next = [&](size_t place) {
      return place < stored_.size() && !IsBefore(stored_[place], wanted) &&
             !IsBefore(wanted, stored_[place]);
    };
    // Both tables mostly have one order.
    if (!is_next(next_)) {
      const auto found =
          std::lower_bound(stored_.begin(), stored_.end(), wanted,
                           [this](const Stored& a, const Stored& b) { return IsBefore(a, b); });
      next_ = static_cast<size_t>(found - stored_.begin());
      if (!is_next(next_)) return nullptr;
    }
    return &records_.item(stored_[next_++].item);
  }

  Status CheckInside(const DcpTensor& tensor, const DcpRecords::Chunk& chunk) const {
    const std::span<const int64_t> begin = records_.At(chunk.offsets);
    const std::span<const int64_t> extent = records_.At(chunk.sizes);
    bool is_inside = begin.size() == tensor.full.size() && extent.size() == begin.size();
    for (size_t d = 0; is_inside && d < begin.size(); ++d) {
      is_inside = extent[d] <= tensor.full[d] && begin[d] <= tensor.full[d] - extent[d];
    }
    if (is_inside) return {};
    return Corrupt(tensor, "the chunk at {} of sizes {} is not inside of its size {}",
                   ShownNumbers(chunk.offsets), ShownNumbers(chunk.sizes),
                   FirstNumbers(tensor.full));
  }

  static constexpr uint32_t kNoTensor = UINT32_MAX;

  DcpRecords& records_;
  PickleExpansion& expansion_;
  const MemoryCheck& memory_;
  DcpMetadata made_;
  std::vector<const DcpRecords::Tensor*> sources_;          // of made_.tensors
  std::unordered_map<std::string_view, uint32_t> numbers_;  // of tensors; kNoTensor for objects
  std::vector<Stored> stored_;                              // by tensor and offsets
  std::unordered_map<const char*, uint32_t> by_place_;      // the same, by the place of the name
  uint64_t chunk_count_ = 0;
  size_t next_ = 0;  // a place in stored_, behind the last one that was found
  uint64_t taken_ = 0;
};

Result<DcpMetadata> Parse(std::vector<std::byte> bytes, const MemoryCheck& memory) {
  PickleExpansion expansion(bytes.size());
  DcpRecords records(bytes.size(), expansion);
  const PickleCollapse collapse = [&records](const Pickle& pickle, const PickleValue& node) {
    return records.Collapse(pickle, node);
  };
  DcpResolver resolver(records, expansion, memory);
  {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    RESHARD_ASSIGN_OR_RETURN(const Pickle pickle, ReadPickle(text, collapse, memory));
    RESHARD_RETURN_IF_ERROR(resolver.TakeTables(pickle));
  }
  records.ForgetTexts();
  std::vector<std::byte>().swap(bytes);  // to assign an empty one would keep the memory
  return std::move(resolver).Resolve();
}

}  // namespace

Result<DcpMetadata> ReadDcpMetadata(const FileBytes& file, const MemoryCheck& memory) {
  if (file.size > kMostDcpMetadata) {
    return ResourceExhaustedError(fmt::format("{}: {}; the metadata may have at most {}",
                                              Escape(file.path), FormatBytes(file.size),
                                              FormatBytes(kMostDcpMetadata)));
  }
  RESHARD_RETURN_IF_ERROR(CheckMemory(memory, file.size));
  std::vector<std::byte> bytes(file.size);
  if (!bytes.empty()) RESHARD_RETURN_IF_ERROR(file.read(0, bytes));
  Result<DcpMetadata> metadata = Parse(std::move(bytes), memory);
  RESHARD_RETURN_IF_ERROR(InFile(file.path, metadata.status()));
  return metadata;
}

}  // namespace reshard
