#include "format/safetensors/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/common_metadata.h"
#include "format/container/file_blocks.h"
#include "format/safetensors/safetensors_container.h"
#include "format/safetensors/safetensors_types.h"
#include "format/safetensors/sharding_info.h"
#include "reshard/byte_range.h"
#include "reshard/tensor.h"
#include "src/base/json_reader.h"
#include "src/base/number_text.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

constexpr uint64_t kLengthBytes = sizeof(uint64_t);
constexpr uint64_t kMostBlock = uint64_t{1} << 20;
constexpr unsigned char kByteOrderMark = 0xEF;  // its first byte
constexpr std::string_view kRemoveRedundancy = "remove_redundancy";

uint64_t LittleEndian(std::span<const std::byte> bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | std::to_integer<uint64_t>(bytes[i]);
  }
  return number;
}

class HeaderReader final : public JsonReader {
 public:
  HeaderReader(const FileBytes& file, uint64_t content_begin, const MemoryCheck& memory)
      : JsonReader(file.path),
        content_begin_(content_begin),
        content_bytes_(file.size - content_begin),
        memory_(memory) {}

  bool HasMetadata(std::string_view key) const { return metadata_keys_.contains(key); }
  // The CRC-32 of the contents, if metadata has one.
  std::optional<StatedCrc> TakeCrc() { return std::exchange(crc_, std::nullopt); }
  StatedShards TakeShards() { return std::exchange(shards_, {}); }

  // Returns the table of all tensors. Errors: kCorrupt.
  Result<std::shared_ptr<const FileTable>> Finish() && {
    RESHARD_RETURN_IF_ERROR(ApplyMarks());
    RESHARD_RETURN_IF_ERROR(PutInOrder());
    if (!metadata_.empty()) builder_.SetMetadata(Kept(std::move(metadata_)));
    RESHARD_RETURN_IF_ERROR(CheckMemory(memory_, builder_.BytesToFinish()));
    std::shared_ptr<const FileTable> table = std::move(builder_).Finish();
    if (const auto twice = table->FindTwice()) {
      return CorruptError(
          fmt::format("tensor {}: its name occurs twice in the header", Quote(twice->first->name)));
    }
    return table;
  }

 private:
  // Depths.
  static constexpr size_t kHeader = 1;      // names, and __metadata__
  static constexpr size_t kMember = 2;      // the content of one object
  static constexpr size_t kMostShown = 40;  // of text that is not JSON
  enum class Field : uint8_t { kDType, kShape, kOffsets };

  Status OnValue(JsonValue& value) override {
    const bool is_string = value.kind == JsonValue::Kind::kString;
    if (depth() > kMember && value.kind == JsonValue::Kind::kUnsigned) {
      return field_ == Field::kShape ? AddSize(value.number) : AddOffset(value.number);
    }
    if (depth() == kMember && in_metadata_ && is_string) return AddMetadata(*value.text);
    if (depth() == kMember && !in_metadata_ && field_ == Field::kDType && is_string) {
      return SetDType(*value.text);
    }
    if (depth() == kHeader && in_metadata_ && value.kind == JsonValue::Kind::kNull) return {};
    return Expected(Wanted(), is_string ? "a string" : value.Shown());
  }

  Status OnOpen(bool is_list) override {
    const bool wants_list = depth() == kMember && !in_metadata_ && field_ != Field::kDType;
    if (is_list ? wants_list : depth() < kMember) return {};
    return Expected(Wanted(), is_list ? "an array" : "an object");
  }

  Status OnClose(bool is_list) override {
    if (is_list && field_ == Field::kOffsets && offsets_ != 2) {
      return Expected("two integers as data_offsets", fmt::format("{}", offsets_));
    }
    return depth() == kHeader && !in_metadata_ ? EndTensor() : Status();
  }

  Status OnKey(const std::string& key) override {
    if (depth() == kHeader) return BeginMember(key);
    return in_metadata_ ? Status() : BeginField(key);
  }

  Status SyntaxError(uint64_t /*offset*/, std::string_view token,
                     std::string_view /*why*/) const override {
    return Fail(fmt::format("the header is not JSON from offset {} on, near {}", offset(),
                            Quote(token.substr(0, kMostShown))));
  }

  Status Fail(std::string_view what) const {
    return Error(in_tensor_ ? fmt::format("tensor {}: {}", Quote(Key(kHeader)), what)
                            : std::string(what));
  }
  Status Expected(std::string_view wanted, std::string_view found) const {
    return Fail(fmt::format("expected {}, found {}", wanted, found));
  }
  std::string Wanted() const {
    if (depth() < kHeader) return "an object as header";
    if (depth() == kHeader) {
      return in_metadata_ ? "an object as __metadata__"
                          : "an object with dtype, shape and data_offsets";
    }
    if (in_metadata_) return fmt::format("a string as metadata {}", Quote(Key(kMember)));
    if (depth() == kMember) {
      return fmt::format("{} as {}", field_ == Field::kDType ? "a string" : "an array of integers",
                         Key(kMember));
    }
    return field_ == Field::kShape ? "sizes, which are integers from 0 on, in its shape"
                                   : "two integers from 0 on as data_offsets";
  }

  Status BeginMember(const std::string& name) {
    in_metadata_ = name == kSafetensorsMetadata;
    if (in_metadata_) {
      return std::exchange(has_metadata_, true) ? Fail("__metadata__ occurs twice in the header")
                                                : Status();
    }
    shape_.clear();
    in_tensor_ = true;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_ = 0;
    return {};
  }
  Status BeginField(const std::string& name) {
    bool* seen = nullptr;
    if (name == "dtype") {
      field_ = Field::kDType;
      seen = &has_dtype_;
    } else if (name == "shape") {
      field_ = Field::kShape;
      seen = &has_shape_;
    } else if (name == "data_offsets") {
      field_ = Field::kOffsets;
      seen = &has_offsets_;
    } else {
      SkipValue();
      return {};
    }
    return std::exchange(*seen, true) ? Fail(fmt::format("{} occurs twice", name)) : Status();
  }

  Status SetDType(const std::string& name) {
    const SafetensorsType* const type = FindSafetensorsType(name);
    if (type == nullptr) {
      return Fail(fmt::format("unknown dtype {}; expected a name such as \"F32\"", Quote(name)));
    }
    dtype_ = type->dtype;
    return {};
  }
  Status AddSize(uint64_t size) {
    if (size > static_cast<uint64_t>(INT64_MAX)) {
      return Fail(fmt::format("a size of {} in its shape is more than 63 bits can count", size));
    }
    shape_.push_back(static_cast<int64_t>(size));
    if (shape_.size() <= kMaxDims) return {};
    return Fail(fmt::format("more than {} dimensions", kMaxDims));
  }
  Status AddOffset(uint64_t offset) {
    if (offsets_ < 2) (offsets_ == 0 ? begin_ : end_) = offset;
    if (++offsets_ <= 2) return {};
    return Expected("two integers as data_offsets", "more");
  }

  Status AddMetadata(const std::string& value) {
    const std::string& key = Key(kMember);
    if (!metadata_keys_.insert(key).second) {
      return Fail(fmt::format("metadata {} occurs twice", Quote(key)));
    }
    if (value == kInt4Mark) {
      int4_.insert(key);
    } else if (key != kSafetensorsCrc && key != kRemoveRedundancy) {
      metadata_.emplace(key, IsOfOwnLayout(key) ? "" : value);
      metadata_bytes_ += value.size();
    }
    if (key == kSafetensorsCrc) RESHARD_RETURN_IF_ERROR(SetCrc(value));
    if (key == kShardingInfo || key == kShardSet) {
      (key == kShardSet ? shards_.set : shards_.begins) = value;
      metadata_bytes_ += value.size();
    }
    metadata_bytes_ += 2 * sizeof(std::string) + 2 * key.size() + kOfNode;
    return CheckHeld();
  }

  Status SetCrc(const std::string& value) {
    // A tensor of the name may have it marked as its dtype.
    if (value == kInt4Mark) return {};
    const std::optional<uint32_t> number = ParseNumber<uint32_t>(value);
    if (!number) {
      return Expected("a CRC-32, decimal, as metadata crc_num", Quote(value));
    }
    crc_ = {.value = *number,
            .covered = {content_begin_, content_bytes_},
            .may_lack = {},
            .of = StatedCrc::Of::kArrays};
    return {};
  }

  // Checks a tensor by itself, and keeps it.
  Status EndTensor() {
    const std::string_view missing = !has_dtype_     ? "dtype"
                                     : !has_shape_   ? "shape"
                                     : !has_offsets_ ? "data_offsets"
                                                     : "";
    if (!missing.empty()) return Fail(fmt::format("it has no {}", missing));
    if (begin_ > end_ || end_ > content_bytes_) {
      return Fail(fmt::format("data_offsets [{}, {}], but the file has {} bytes behind its header",
                              begin_, end_, content_bytes_));
    }
    const uint64_t values = ElementsOfItem(dtype_);
    // Sizes count elements, which may be of less than a byte: then bits are counted.
    const uint64_t unit = values == 1 ? 1 : 8;
    const std::optional<uint64_t> units = TensorBytes(shape_, ItemBytes(dtype_) * unit / values);
    if (!units) {
      return Fail(fmt::format("shape {} of {} makes more bytes than 63 bits can count",
                              ToString(shape_), SafetensorsTypeOf(dtype_)->name));
    }
    if (*units % unit != 0) {
      return Fail(fmt::format("shape {} of {} does not fill whole bytes", ToString(shape_),
                              SafetensorsTypeOf(dtype_)->name));
    }
    const uint64_t bytes = end_ - begin_;
    if (bytes != *units / unit) {
      return Fail(fmt::format("{} bytes by its data_offsets [{}, {}], but shape {} of {} needs {}",
                              bytes, begin_, end_, ToString(shape_),
                              SafetensorsTypeOf(dtype_)->name, *units / unit));
    }
    const ArrayKind kind = CountItems(static_cast<int64_t>(values));
    const ByteRange range{content_begin_ + begin_, bytes};
    builder_.Add({.name = Key(kHeader),
                  .kind = kind,
                  .dtype = dtype_,
                  .shape = shape_,
                  .bytes = bytes,
                  .framed = {&range, 1},
                  .content = {&range, 1},
                  .map_tensor = {}});
    in_tensor_ = false;
    return CheckHeld();
  }
  // The last dimension counts items. An item has several elements if these are smaller than a byte.
  ArrayKind CountItems(int64_t values) {
    if (values == 1) return ArrayKind::kTensor;
    if (shape_.empty() || shape_.back() % values != 0) return ArrayKind::kPacked;
    shape_.back() /= values;
    return ArrayKind::kTensor;
  }
  Status CheckHeld() {
    if (metadata_bytes_ > kMaxTableBytes) {
      return Error(
          StatusCode::kResourceExhausted,
          fmt::format(
              "its metadata needs more than {} MiB of memory: {} keys so far; save it without them",
              kMaxTableBytes >> 20, metadata_keys_.size()));
    }
    return ++kept_ % kMemoryCheckInterval == 0 ? CheckMemory(memory_) : Status();
  }

  // Most files have MindSpore's metadata, and share it.
  static std::shared_ptr<const FileStrings> Kept(FileStrings metadata) {
    static const auto kMindSpore =
        std::make_shared<const FileStrings>(FileStrings{{"format", "ms"}});
    if (metadata == *kMindSpore) return kMindSpore;
    return std::make_shared<const FileStrings>(std::move(metadata));
  }

  // Takes tensors of I8 that metadata says are Int4 for these.
  Status ApplyMarks() {
    if (int4_.empty()) return {};
    for (size_t i = 0; i < builder_.size(); ++i) {
      const StoredArray array = builder_.At(i);
      if (!int4_.contains(array.name)) continue;
      if (array.dtype != DType::kInt8) {
        return CorruptError(
            fmt::format("tensor {}: metadata says {}, which I8 may be, but it is {}",
                        Quote(array.name), kInt4Mark, SafetensorsTypeOf(array.dtype)->name));
      }
      builder_.SetDType(i, DType::kInt4);
    }
    return {};
  }

  // Puts tensors in the order of their bytes, which they have to fill without gaps.
  Status PutInOrder() {
    builder_.SortByContent();
    uint64_t end = 0;
    for (size_t i = 0; i < builder_.size(); ++i) {
      const StoredArray array = builder_.At(i);
      const uint64_t begin = array.content.front().offset - content_begin_;
      if (begin != end) {
        return CorruptError(fmt::format(
            "tensor {}: data_offsets [{}, {}], but the tensor before it ends at {}; tensors have "
            "to follow one another without gaps",
            Quote(array.name), begin, begin + array.bytes, end));
      }
      end = begin + array.bytes;
    }
    if (end == content_bytes_) return {};
    return CorruptError(
        fmt::format("its tensors end at {} of {} bytes behind the header; the file is truncated or "
                    "has something else at its end",
                    end, content_bytes_));
  }

  static constexpr size_t kOfNode = 64;

  const uint64_t content_begin_;  // in the file
  const uint64_t content_bytes_;
  const MemoryCheck& memory_;
  bool has_metadata_ = false;
  bool in_metadata_ = false;
  StatedShards shards_;  // metadata
  std::set<std::string, std::less<>> metadata_keys_;
  std::set<std::string, std::less<>> int4_;
  FileStrings metadata_;
  std::optional<StatedCrc> crc_;
  // The tensor at hand.
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  bool in_tensor_ = false;
  Field field_ = Field::kDType;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  size_t offsets_ = 0;  // how many were there
  uint64_t begin_ = 0;  // behind the header
  uint64_t end_ = 0;

  TableBuilder builder_{kSafetensorsContainer};
  size_t metadata_bytes_ = 0;  // of memory, about
  uint64_t kept_ = 0;
};

// Checks the length of a header and returns its end.
Result<uint64_t> HeaderEnd(uint64_t file_size, std::span<const std::byte> head) {
  if (file_size < kLengthBytes) {
    return CorruptError(
        fmt::format("{} bytes; expected the length of a safetensors header in the "
                    "first {}",
                    file_size, kLengthBytes));
  }
  const uint64_t length = LittleEndian(head.first(kLengthBytes));
  if (length > kMostSafetensorsHeader || length > file_size - kLengthBytes) {
    return CorruptError(
        fmt::format("a header of {} bytes by its first {}; expected at most {}, and "
                    "no more than the {} behind these",
                    length, kLengthBytes, kMostSafetensorsHeader, file_size - kLengthBytes));
  }
  return kLengthBytes + length;
}

}  // namespace

Result<TableOfFile> ReadSafetensorsTable(const FileBytes& file, std::span<const std::byte> head,
                                         const MemoryCheck& memory) {
  const Result<uint64_t> end = HeaderEnd(file.size, head);
  RESHARD_RETURN_IF_ERROR(InFile(file.path, end.status()));
  // nlohmann's parser would step over it.
  if (*end > kLengthBytes && head.size() > kLengthBytes &&
      std::to_integer<unsigned char>(head[kLengthBytes]) == kByteOrderMark) {
    return InFile(file.path,
                  CorruptError("the header begins with a byte order mark; expected a brace"));
  }
  FileBlocks blocks(file, {kLengthBytes, *end - kLengthBytes}, memory, head);
  HeaderReader header(file, *end, memory);
  RESHARD_RETURN_IF_ERROR(header.Read(kLengthBytes, [&blocks] { return blocks.Next(); }));
  const bool states_redundancy = header.HasMetadata(kRemoveRedundancy);
  std::optional<StatedCrc> crc = header.TakeCrc();
  StatedShards shards = header.TakeShards();
  Result<std::shared_ptr<const FileTable>> table = std::move(header).Finish();
  RESHARD_RETURN_IF_ERROR(InFile(file.path, table.status()));
  return TableOfFile{*std::move(table), std::move(crc), states_redundancy, std::move(shards)};
}

Likeness LikenessOfSafetensors(std::span<const std::byte> head) {
  // No header comes near this length, and no checkpoint of MindSpore begins with less.
  constexpr uint64_t kNoHeader = uint64_t{1} << 40;
  // The first bytes of JSON, and of a byte order mark, which is not allowed.
  constexpr std::string_view kBegin = "{[ \t\r\n\xEF";
  if (head.size() <= kLengthBytes ||
      kBegin.find(std::to_integer<char>(head[kLengthBytes])) == std::string_view::npos) {
    return Likeness::kNone;
  }
  const uint64_t length = LittleEndian(head.first(kLengthBytes));
  if (length > kNoHeader) return Likeness::kNone;
  return length > kMostSafetensorsHeader ? Likeness::kPossible : Likeness::kCertain;
}

Result<bool> MayStateCrc(const FileBytes& file) {
  constexpr uint64_t kOverlap = kSafetensorsCrc.size() - 1;
  std::vector<std::byte> block(std::min(file.size, kHeaderPage));
  if (block.size() < kLengthBytes) return false;
  RESHARD_RETURN_IF_ERROR(file.read(0, block));
  const uint64_t header = std::min(LittleEndian(std::span(block).first(kLengthBytes)),
                                   std::min(kMostSafetensorsHeader, file.size - kLengthBytes));
  for (uint64_t begin = 0;;) {
    // A small file's contents are in the block, too.
    const std::string_view text(reinterpret_cast<const char*>(block.data()),
                                std::min(block.size(), kLengthBytes + header - begin));
    if (text.find(kSafetensorsCrc) != std::string_view::npos ||
        text.find('\\') != std::string_view::npos) {
      return true;
    }
    const uint64_t end = begin + block.size();
    if (end >= kLengthBytes + header) return false;
    begin = end - kOverlap;
    block.resize(std::min(kMostBlock, kLengthBytes + header - begin));
    RESHARD_RETURN_IF_ERROR(file.read(begin, block));
  }
}

}  // namespace reshard
