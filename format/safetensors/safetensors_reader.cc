#include "format/safetensors/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "format/container/common_metadata.h"
#include "format/safetensors/safetensors_container.h"
#include "format/safetensors/safetensors_types.h"
#include "format/safetensors/sharding_info.h"
#include "reshard/byte_range.h"
#include "reshard/tensor.h"
#include "src/base/byte_stream.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

using nlohmann::json;

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

// The bytes of the header, one after the other, read in blocks. Before each it is asked for memory:
// the parser keeps a string's bytes, and one may be as long as the header.
class HeaderBytes {
 public:
  HeaderBytes(const FileBytes& file, std::span<const std::byte> head, uint64_t end,
              const MemoryCheck& memory)
      : file_(file),
        memory_(memory),
        block_(head.first(std::min<uint64_t>(head.size(), end))),
        end_(end) {
    FindZero(std::min<uint64_t>(kLengthBytes, end));
  }

  // Of the next byte, in the file.
  uint64_t offset() const { return begin_ + place_; }
  // Why it could not be read to its end, if so.
  const Status& status() const { return status_; }
  // Where it has a zero byte, which nlohmann's parser takes for its end.
  const std::optional<uint64_t>& zero() const { return zero_; }

  void Skip(size_t bytes = 1) { place_ += bytes; }
  // Whether there is a next byte.
  bool Ready() {
    if (place_ < block_.size()) return true;
    if (offset() == end_ || !status_.ok()) return false;
    begin_ += block_.size();
    place_ = 0;
    status_ = CheckMemory(memory_);
    if (status_.ok()) {
      buffer_.resize(std::min(kMostBlock, end_ - begin_));
      status_ = file_.read(begin_, buffer_);
    }
    block_ = status_.ok() ? std::span<const std::byte>(buffer_) : std::span<const std::byte>();
    FindZero(0);
    return status_.ok();
  }
  const char& Front() const { return reinterpret_cast<const char&>(block_[place_]); }

 private:
  // Looks into the block from `begin` on.
  void FindZero(uint64_t begin) {
    const auto found =
        std::find(block_.begin() + static_cast<std::ptrdiff_t>(begin), block_.end(), std::byte{0});
    if (found == block_.end() || zero_) return;
    zero_ = begin_ + static_cast<uint64_t>(found - block_.begin());
  }

  const FileBytes& file_;
  const MemoryCheck& memory_;
  std::span<const std::byte> block_;
  uint64_t begin_ = 0;  // of the block, in the file
  size_t place_ = 0;    // in the block
  const uint64_t end_;
  std::vector<std::byte> buffer_;
  Status status_;
  std::optional<uint64_t> zero_;
};

using HeaderIterator = ByteStreamIterator<HeaderBytes>;

// Takes the tokens of a header. A function that returns false ends the parsing.
class HeaderTokens {
 public:
  HeaderTokens(const HeaderBytes& bytes, uint64_t content_begin, uint64_t content_bytes,
               const MemoryCheck& memory)
      : bytes_(bytes),
        content_begin_(content_begin),
        content_bytes_(content_bytes),
        memory_(memory) {}

  bool HasMetadata(std::string_view key) const { return metadata_keys_.contains(key); }
  // The CRC-32 of the contents, where metadata has one.
  std::optional<StatedCrc> TakeCrc() { return std::exchange(crc_, std::nullopt); }
  std::string TakeShardingInfo() { return std::exchange(sharding_info_, {}); }

  // What nlohmann's parser calls.
  bool null() {
    if (state_ == State::kMetadataValue) {
      state_ = State::kMember;
      return true;
    }
    return Other("null");
  }
  bool boolean(bool /*value*/) { return Other("a boolean"); }
  bool number_integer(int64_t value) { return Other(fmt::format("{}", value)); }
  bool number_float(double /*value*/, const std::string& text) { return Other(text); }
  bool binary(json::binary_t& /*value*/) { return Other("bytes"); }
  bool number_unsigned(uint64_t value) {
    if (state_ == State::kShape) {
      if (value > static_cast<uint64_t>(INT64_MAX)) {
        return Fail(fmt::format("a size of {} in its shape is more than 63 bits can count", value));
      }
      shape_.push_back(static_cast<int64_t>(value));
      if (shape_.size() <= kMaxDims) return true;
      return Fail(fmt::format("more than {} dimensions", kMaxDims));
    }
    if (state_ == State::kOffsets) {
      if (offsets_ < 2) (offsets_ == 0 ? begin_ : end_) = value;
      if (++offsets_ <= 2) return true;
      return Expected("two integers as data_offsets", "more");
    }
    return Other(fmt::format("{}", value));
  }
  bool string(std::string& value) {
    if (state_ == State::kMetadataString) return AddMetadata(value);
    if (state_ != State::kTensorValue || key_ != "dtype") return Other("a string");
    const SafetensorsType* const type = FindSafetensorsType(value);
    if (type == nullptr) {
      return Fail(fmt::format("unknown dtype {}; expected a name such as \"F32\"", Quote(value)));
    }
    dtype_ = type->dtype;
    state_ = State::kTensorMember;
    return true;
  }
  bool start_object(size_t /*elements*/) {
    switch (state_) {
      case State::kHeader:
        state_ = State::kMember;
        return true;
      case State::kMetadataValue:
        state_ = State::kMetadataMember;
        return true;
      case State::kTensor:
        state_ = State::kTensorMember;
        return true;
      default:
        return Open("an object");
    }
  }
  bool key(std::string& name) {
    switch (state_) {
      case State::kMember:
        return BeginMember(name);
      case State::kMetadataMember:
        metadata_key_.swap(name);
        state_ = State::kMetadataString;
        return true;
      case State::kTensorMember:
        return BeginTensorMember(name);
      default:
        return true;  // of what is ignored
    }
  }
  bool end_object() {
    switch (state_) {
      case State::kIgnored:
        return Close();
      case State::kMetadataMember:
        state_ = State::kMember;
        return true;
      case State::kTensorMember:
        state_ = State::kMember;
        return EndTensor();
      default:
        state_ = State::kEnd;
        return true;
    }
  }
  bool start_array(size_t /*elements*/) {
    if (state_ == State::kTensorValue && key_ == "shape") {
      state_ = State::kShape;
      return true;
    }
    if (state_ == State::kTensorValue && key_ == "data_offsets") {
      state_ = State::kOffsets;
      return true;
    }
    return Open("an array");
  }
  bool end_array() {
    if (state_ == State::kIgnored) return Close();
    if (state_ == State::kOffsets && offsets_ != 2) {
      return Expected("two integers as data_offsets", fmt::format("{}", offsets_));
    }
    state_ = State::kTensorMember;
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& last_token,
                   const json::exception& /*error*/) {
    return Fail(fmt::format("the header is not JSON from offset {} on, near {}", bytes_.offset(),
                            Quote(last_token.substr(0, kMostShown))));
  }

  // Why the parsing ended, if it did not come to the end; this one has no path.
  const Status& status() const { return status_; }
  const Status& memory_status() const { return memory_status_; }

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
  enum class State : uint8_t {
    kHeader,          // before its brace
    kMember,          // a name of the header, or its end, comes next
    kMetadataValue,   // of __metadata__
    kMetadataMember,  // a key of it
    kMetadataString,
    kTensor,        // its brace
    kTensorMember,  // a key of it, or its end
    kTensorValue,   // dtype, shape or data_offsets
    kShape,
    kOffsets,
    kIgnored,  // a member of a tensor that has no meaning
    kEnd,
  };
  static constexpr size_t kMostShown = 40;

  bool Fail(std::string_view what) {
    status_ = CorruptError(in_tensor_ ? fmt::format("tensor {}: {}", Quote(name_), what)
                                      : std::string(what));
    return false;
  }
  bool Expected(std::string_view wanted, std::string_view found) {
    return Fail(fmt::format("expected {}, found {}", wanted, found));
  }
  // A value where none of its kind may be, unless it is ignored.
  bool Other(std::string_view found) {
    if (state_ == State::kIgnored) {
      if (depth_ == 0) state_ = State::kTensorMember;
      return true;
    }
    return Expected(Wanted(), found);
  }
  std::string Wanted() const {
    switch (state_) {
      case State::kHeader:
        return "an object as header";
      case State::kMetadataValue:
        return "an object as __metadata__";
      case State::kMetadataString:
        return fmt::format("a string as metadata {}", Quote(metadata_key_));
      case State::kTensor:
        return "an object with dtype, shape and data_offsets";
      case State::kShape:
        return "sizes, which are integers from 0 on, in its shape";
      case State::kOffsets:
        return "two integers from 0 on as data_offsets";
      default:
        return fmt::format("{} as {}", key_ == "dtype" ? "a string" : "an array of integers", key_);
    }
  }
  bool Open(std::string_view found) {
    if (state_ != State::kIgnored) return Expected(Wanted(), found);
    ++depth_;
    return true;
  }
  bool Close() {
    if (--depth_ == 0) state_ = State::kTensorMember;
    return true;
  }

  bool BeginMember(std::string& name) {
    if (name == kSafetensorsMetadata) {
      if (has_metadata_) return Fail("__metadata__ occurs twice in the header");
      has_metadata_ = true;
      state_ = State::kMetadataValue;
      return true;
    }
    name_.swap(name);
    shape_.clear();
    in_tensor_ = true;
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_ = 0;
    state_ = State::kTensor;
    return true;
  }
  bool BeginTensorMember(std::string& name) {
    bool* const seen = name == "dtype"          ? &has_dtype_
                       : name == "shape"        ? &has_shape_
                       : name == "data_offsets" ? &has_offsets_
                                                : nullptr;
    if (seen == nullptr) {
      state_ = State::kIgnored;
      depth_ = 0;
      return true;
    }
    key_.swap(name);
    if (*seen) return Fail(fmt::format("{} occurs twice", key_));
    *seen = true;
    state_ = State::kTensorValue;
    return true;
  }
  bool AddMetadata(const std::string& value) {
    state_ = State::kMetadataMember;
    if (!metadata_keys_.insert(metadata_key_).second) {
      return Fail(fmt::format("metadata {} occurs twice", Quote(metadata_key_)));
    }
    if (value == kInt4Mark) {
      int4_.insert(metadata_key_);
    } else if (metadata_key_ != kSafetensorsCrc && metadata_key_ != kRemoveRedundancy) {
      metadata_.emplace(metadata_key_, IsOfOwnLayout(metadata_key_) ? "" : value);
      metadata_bytes_ += value.size();
    }
    if (metadata_key_ == kSafetensorsCrc && !SetCrc(value)) return false;
    if (metadata_key_ == kShardingInfo) {
      sharding_info_ = value;
      metadata_bytes_ += value.size();
    }
    metadata_bytes_ += 2 * sizeof(std::string) + 2 * metadata_key_.size() + kOfNode;
    return CheckHeld();
  }

  bool SetCrc(const std::string& value) {
    uint32_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [behind, error] = std::from_chars(value.data(), end, number);
    // A tensor of the name may have it marked as its dtype.
    if (value == kInt4Mark) return true;
    if (error != std::errc() || behind != end) {
      return Expected("a CRC-32, decimal, as metadata crc_num", Quote(value));
    }
    crc_ = {.value = number,
            .covered = {content_begin_, content_bytes_},
            .may_lack = {},
            .of = StatedCrc::Of::kArrays};
    return true;
  }

  // Checks a tensor by itself, and keeps it.
  bool EndTensor() {
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
    builder_.Add({.name = name_,
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
  // Sizes of the last dimension are items, of several elements where these are less than a byte.
  ArrayKind CountItems(int64_t values) {
    if (values == 1) return ArrayKind::kTensor;
    if (shape_.empty() || shape_.back() % values != 0) return ArrayKind::kPacked;
    shape_.back() /= values;
    return ArrayKind::kTensor;
  }
  bool CheckHeld() {
    if (metadata_bytes_ > kMaxTableBytes) {
      status_ = ResourceExhaustedError(fmt::format(
          "its metadata needs more than {} MiB of memory: {} keys so far; save it without them",
          kMaxTableBytes >> 20, metadata_keys_.size()));
      return false;
    }
    if (++kept_ % kMemoryCheckInterval != 0) return true;
    memory_status_ = CheckMemory(memory_);
    return memory_status_.ok();
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

  const HeaderBytes& bytes_;
  const uint64_t content_begin_;  // in the file
  const uint64_t content_bytes_;
  const MemoryCheck& memory_;
  Status status_;
  Status memory_status_;
  State state_ = State::kHeader;
  size_t depth_ = 0;  // of arrays and objects that are ignored
  bool has_metadata_ = false;
  std::string metadata_key_;
  std::string sharding_info_;  // metadata
  std::set<std::string, std::less<>> metadata_keys_;
  std::set<std::string, std::less<>> int4_;
  FileStrings metadata_;
  std::optional<StatedCrc> crc_;
  // The tensor at hand.
  std::string name_;
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  bool in_tensor_ = false;
  std::string key_;
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

// Checks the length of a header and returns where it ends.
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
  HeaderBytes bytes(file, head, *end, memory);
  bytes.Skip(kLengthBytes);
  // nlohmann's parser would step over it.
  if (bytes.Ready() && static_cast<unsigned char>(bytes.Front()) == kByteOrderMark) {
    return InFile(file.path,
                  CorruptError("the header begins with a byte order mark; expected a brace"));
  }
  HeaderTokens tokens(bytes, *end, file.size - *end, memory);
  json::sax_parse(HeaderIterator(&bytes), HeaderIterator(&bytes), &tokens);
  RESHARD_RETURN_IF_ERROR(bytes.status());
  RESHARD_RETURN_IF_ERROR(tokens.memory_status());
  RESHARD_RETURN_IF_ERROR(InFile(file.path, tokens.status()));
  if (bytes.zero()) {
    return InFile(file.path, CorruptError(fmt::format("a zero byte in the header, at offset {}",
                                                      *bytes.zero())));
  }
  const bool states_redundancy = tokens.HasMetadata(kRemoveRedundancy);
  std::optional<StatedCrc> crc = tokens.TakeCrc();
  std::string sharding_info = tokens.TakeShardingInfo();
  Result<std::shared_ptr<const FileTable>> table = std::move(tokens).Finish();
  RESHARD_RETURN_IF_ERROR(InFile(file.path, table.status()));
  return TableOfFile{*std::move(table), std::move(crc), states_redundancy,
                     std::move(sharding_info)};
}

Likeness LikenessOfSafetensors(std::span<const std::byte> head) {
  // No header comes near this length, and no checkpoint of MindSpore begins with less.
  constexpr uint64_t kNoHeader = uint64_t{1} << 40;
  // JSON's first bytes, and that of a byte order mark, which must not be there.
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
    if (text.find(kSafetensorsCrc) != std::string_view::npos) return true;
    const uint64_t end = begin + block.size();
    if (end >= kLengthBytes + header) return false;
    begin = end - kOverlap;
    block.resize(std::min(kMostBlock, kLengthBytes + header - begin));
    RESHARD_RETURN_IF_ERROR(file.read(begin, block));
  }
}

}  // namespace reshard
