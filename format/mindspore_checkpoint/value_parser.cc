#include "format/mindspore_checkpoint/value_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/quote.h"

namespace reshard {
namespace {

// Wire types of protobuf.
constexpr uint32_t kVarint = 0;
constexpr uint32_t kFixed64 = 1;
constexpr uint32_t kBlock = 2;
constexpr uint32_t kGroupBegin = 3;
constexpr uint32_t kGroupEnd = 4;
constexpr uint32_t kFixed32 = 5;

// Limits of libprotobuf: varints of a key and of anything else, open messages and groups.
constexpr size_t kMaxKeyBytes = 5;
constexpr size_t kMaxVarintBytes = 10;
constexpr size_t kMaxNesting = 100;

// Keys of the fields that MindSpore writes, in its order: number << 3 | wire type.
constexpr std::byte kValueKey{0x0a};
constexpr std::byte kTagKey{0x0a};
constexpr std::byte kTensorKey{0x12};
constexpr std::byte kDimKey{0x08};
constexpr std::byte kTypeKey{0x12};
constexpr std::byte kContentKey{0x1a};

// Goes through bytes that are written as usual: each number in as few bytes as it needs.
class UsualBytes {
 public:
  explicit UsualBytes(std::span<const std::byte> bytes)
      : begin_(bytes.data()), next_(begin_), end_(begin_ + bytes.size()) {}

  uint64_t position() const { return static_cast<uint64_t>(next_ - begin_); }

  bool Take(std::byte key) {
    if (next_ == end_ || *next_ != key) return false;
    ++next_;
    return true;
  }

  bool TakeNumber(uint64_t* number) {
    if (next_ == end_) return false;
    *number = std::to_integer<uint64_t>(*next_++);
    if (*number < 0x80) return true;
    *number &= 0x7f;
    for (int shift = 7; next_ != end_ && shift < kMostBits; shift += 7) {
      const auto byte = std::to_integer<uint64_t>(*next_++);
      *number |= (byte & 0x7f) << shift;
      if (byte < 0x80) return byte != 0;
    }
    return false;
  }

  bool TakeString(uint64_t length, std::string_view* text) {
    if (length > static_cast<uint64_t>(end_ - next_)) return false;
    *text = {reinterpret_cast<const char*>(next_), length};
    next_ += length;
    return true;
  }

 private:
  static constexpr int kMostBits = 63;

  const std::byte* begin_;
  const std::byte* next_;
  const std::byte* end_;
};

// Few tensors have more dims.
constexpr size_t kUsualDims = 8;

}  // namespace

ValueParser::ValueParser(uint64_t end) : frames_{} { frames_[0] = {Message::kCheckpoint, end}; }

Result<ValueParser::Event> ValueParser::Advance(uint64_t offset,
                                                std::span<const std::byte> window) {
  window_offset_ = offset;
  window_ = window;
  needed_ = {};
  for (;;) {
    bool parsed = true;
    if (frame_count_ == 1 && !finishing_ && ParseUsualValue()) return Event::kValue;
    if (finishing_) {
      if (FinishValue()) return Event::kValue;
      parsed = false;
    } else if (position_ < frame().end) {
      parsed = ParseField();
    } else if (!groups_.empty()) {
      parsed = Fail(fmt::format("group {} is still open at the end of its message, offset {}",
                                groups_.back(), position_));
    } else if (frame_count_ == 1) {
      return Event::kDone;
    } else {
      finishing_ = frame().message == Message::kValue;
      --frame_count_;
    }
    if (parsed) continue;
    if (needed_.length > 0) return Event::kNeedsBytes;
    return error_;
  }
}

bool ValueParser::ParseUsualValue() {
  if (!groups_.empty() || position_ >= frame().end) return false;
  UsualBytes bytes(BytesAt(position_));
  uint64_t length = 0;
  if (!bytes.Take(kValueKey) || !bytes.TakeNumber(&length)) return false;
  const uint64_t left = frame().end - position_;
  if (bytes.position() > left || length > left - bytes.position()) return false;
  const uint64_t end = bytes.position() + length;  // of the Value, from position_ on, as all here

  std::string_view tag;
  if (!bytes.Take(kTagKey) || !bytes.TakeNumber(&length) || length > kMaxTagBytes ||
      !bytes.TakeString(length, &tag)) {
    return false;
  }
  if (!bytes.Take(kTensorKey) || !bytes.TakeNumber(&length)) return false;
  if (length > end || bytes.position() != end - length) return false;

  std::array<int64_t, kUsualDims> dims;
  size_t dim_count = 0;
  for (uint64_t dim = 0; bytes.Take(kDimKey); ++dim_count) {
    if (dim_count == dims.size() || !bytes.TakeNumber(&dim)) return false;
    dims[dim_count] = static_cast<int64_t>(dim);
  }
  std::string_view type;
  if (!bytes.Take(kTypeKey) || !bytes.TakeNumber(&length) || length > kMaxTypeBytes ||
      !bytes.TakeString(length, &type)) {
    return false;
  }
  if (!bytes.Take(kContentKey) || !bytes.TakeNumber(&length)) return false;
  if (length > end || bytes.position() != end - length) return false;

  value_.message = {position_, end};
  value_.tag = tag;
  value_.is_map_tensor = false;
  value_.tensors.resize(1);
  ParsedTensor& tensor = value_.tensors.front();
  tensor.dims.assign(dims.begin(), dims.begin() + dim_count);
  tensor.type = type;
  tensor.content = {position_ + bytes.position(), length};
  position_ += end;
  return true;
}

bool ValueParser::ParseField() {
  uint64_t at = position_;
  if (frame().message == Message::kPackedDims) {
    uint64_t dim = 0;
    if (!ReadVarint(kMaxVarintBytes, &at, &dim)) return false;
    AddDim(dim);
    position_ = at;
    return true;
  }

  Key key{};
  if (!ReadKey(&at, &key)) return false;
  uint64_t number = 0;
  switch (key.wire_type) {
    case kVarint:
      if (!ReadVarint(kMaxVarintBytes, &at, &number)) return false;
      if (groups_.empty() && frame().message == Message::kTensor && key.field == 1) AddDim(number);
      break;
    case kFixed64:
      if (!CheckLeft(at, 8)) return false;
      at += 8;
      break;
    case kBlock:
      if (!ReadLength(&at, &number)) return false;
      ParseBlock(key.field, at, number);
      return true;
    case kGroupBegin:
      // An open group counts like an open message.
      if (frame_count_ - 1 + groups_.size() == kMaxNesting) {
        return Fail(fmt::format("groups at offset {} are nested more than {} deep", position_,
                                kMaxNesting));
      }
      groups_.push_back(key.field);
      break;
    case kGroupEnd:
      if (groups_.empty() || groups_.back() != key.field) {
        return Fail(fmt::format("end of group {} at offset {}, but {}", key.field, position_,
                                groups_.empty() ? "no group is open"
                                                : fmt::format("group {} is open", groups_.back())));
      }
      groups_.pop_back();
      break;
    case kFixed32:
      if (!CheckLeft(at, 4)) return false;
      at += 4;
      break;
    default:
      return Fail(fmt::format("field {} at offset {} has wire type {}, which does not exist",
                              key.field, position_, key.wire_type));
  }
  position_ = at;
  return true;
}

// A length-delimited field in the current message, with the bytes [begin, begin + length): a
// message to enter, a string to note, or a field to skip.
void ValueParser::ParseBlock(uint32_t field, uint64_t begin, uint64_t length) {
  const uint64_t end = begin + length;
  const uint64_t field_offset = std::exchange(position_, end);
  if (!groups_.empty()) return;
  switch (frame().message) {
    case Message::kCheckpoint:
      if (field != 1) return;
      value_.message = {field_offset, end - field_offset};
      tag_.reset();
      kind_.reset();
      Enter(Message::kValue, begin, end);
      return;
    case Message::kValue:
      if (field == 1) tag_ = {begin, length};
      if (field == 2) EnterOneof(Message::kTensor, begin, end);
      if (field == 3) EnterOneof(Message::kMapTensor, begin, end);
      return;
    case Message::kMapTensor:
      if (field != 1) return;
      StartTensor();
      Enter(Message::kTensor, begin, end);
      return;
    case Message::kTensor:
      if (field == 1) Enter(Message::kPackedDims, begin, end);
      if (field == 2) tensors_.back().type = {begin, length};
      if (field == 3) tensors_.back().content = {begin, length};
      return;
    case Message::kPackedDims:
      return;
  }
}

void ValueParser::Enter(Message message, uint64_t begin, uint64_t end) {
  frames_[frame_count_++] = {message, end};
  position_ = begin;
}

// Fields of a message that comes again are added to it; the oneof's other message replaces it.
void ValueParser::EnterOneof(Message message, uint64_t begin, uint64_t end) {
  if (kind_ != message) {
    kind_ = message;
    tensors_.clear();
    tensor_count_ = 0;
    if (message == Message::kTensor) StartTensor();
  }
  Enter(message, begin, end);
}

void ValueParser::StartTensor() {
  ++tensor_count_;
  if (tensors_.size() > kMapTensors) tensors_.pop_back();
  tensors_.emplace_back().dims.reserve(kUsualDims);
}

void ValueParser::AddDim(uint64_t varint) {
  TensorFields& tensor = tensors_.back();
  ++tensor.dim_count;
  if (tensor.dims.size() < kMaxDims) tensor.dims.push_back(static_cast<int64_t>(varint));
}

// Reads the strings of a Value at the end of its message.
bool ValueParser::FinishValue() {
  if (strings_read_ == 0) {
    if (!tag_) return Fail("it has no tag");
    if (tag_->length > kMaxTagBytes) {
      return Fail(fmt::format("its tag has {} bytes, but at most {} are accepted", tag_->length,
                              kMaxTagBytes));
    }
    if (!ReadString(*tag_, &value_.tag) || !CheckTensors()) return false;
    strings_read_ = 1;
    value_.is_map_tensor = kind_ == Message::kMapTensor;
    value_.tensors.resize(tensors_.size());
  }
  for (; strings_read_ <= tensors_.size(); ++strings_read_) {
    const TensorFields& fields = tensors_[strings_read_ - 1];
    ParsedTensor& tensor = value_.tensors[strings_read_ - 1];
    if (!ReadString(*fields.type, &tensor.type)) return false;
    tensor.dims = fields.dims;
    tensor.content = *fields.content;
  }
  strings_read_ = 0;
  finishing_ = false;
  return true;
}

bool ValueParser::CheckTensors() {
  if (!kind_) return Fail("expected a tensor or a MapTensor, found another value");
  if (kind_ == Message::kMapTensor && tensor_count_ != kMapTensors) {
    return Fail(fmt::format("a MapTensor of {} tensors; expected {} (keys, values, status)",
                            tensor_count_, kMapTensors));
  }
  for (const TensorFields& tensor : tensors_) {
    if (!tensor.type) return Fail("its tensor has no tensor_type");
    if (!tensor.content) return Fail("its tensor has no tensor_content");
    if (tensor.dim_count > kMaxDims) {
      return Fail(fmt::format("its tensor has {} dims, but at most {} are accepted",
                              tensor.dim_count, kMaxDims));
    }
    if (tensor.type->length > kMaxTypeBytes) {
      return Fail(fmt::format("its tensor_type has {} bytes; no known type has so many",
                              tensor.type->length));
    }
  }
  return true;
}

bool ValueParser::ReadKey(uint64_t* at, Key* key) {
  uint64_t number = 0;
  if (!ReadVarint(kMaxKeyBytes, at, &number)) return false;
  // Surplus bits of the fifth byte are dropped, as libprotobuf does.
  const auto bits = static_cast<uint32_t>(number);
  *key = {.field = bits >> 3, .wire_type = bits & 7};
  if (key->field != 0) return true;
  return Fail(fmt::format("field number 0 at offset {}", position_));
}

bool ValueParser::ReadLength(uint64_t* at, uint64_t* length) {
  const uint64_t begin = *at;
  if (!ReadVarint(kMaxVarintBytes, at, length)) return false;
  // libprotobuf reads lengths of up to 5 bytes, padded ones included; more are only for lengths
  // that need them.
  const uint64_t bytes = *at - begin;
  if (bytes > kMaxKeyBytes && *length >> (7 * (bytes - 1)) == 0) {
    return Fail(fmt::format("the length at offset {} takes {} bytes for the number {}", begin,
                            bytes, *length));
  }
  return CheckLeft(*at, *length);
}

bool ValueParser::ReadVarint(size_t max_bytes, uint64_t* at, uint64_t* number) {
  const std::span<const std::byte> window = BytesAt(*at);
  const uint64_t left = frame().end - *at;
  const auto size = std::min<uint64_t>({window.size(), left, max_bytes});
  if (size > 0 && window[0] < std::byte{0x80}) {  // as most are
    *number = std::to_integer<uint64_t>(window[0]);
    ++*at;
    return true;
  }
  *number = 0;
  for (uint64_t i = 0; i < size; ++i) {
    const auto byte = std::to_integer<uint64_t>(window[i]);
    *number |= (byte & 0x7f) << (7 * i);  // of a tenth byte the lowest bit
    if (byte < 0x80) {
      *at += i + 1;
      return true;
    }
  }
  if (size == max_bytes) {
    return Fail(fmt::format("the number at offset {} has more than {} bytes", *at, max_bytes));
  }
  if (size == left) {
    return Fail(
        fmt::format("the number at offset {} goes on beyond the end of its message, "
                    "offset {}",
                    *at, frame().end));
  }
  needed_ = {position_, *at + size + 1 - position_};
  return false;
}

bool ValueParser::ReadString(const ByteRange& range, std::string* out) {
  const std::span<const std::byte> window = BytesAt(range.offset);
  if (window.size() < range.length) {
    needed_ = range;
    return false;
  }
  out->clear();
  if (range.length > 0) out->assign(reinterpret_cast<const char*>(window.data()), range.length);
  return true;
}

bool ValueParser::CheckLeft(uint64_t at, uint64_t length) {
  const uint64_t left = frame().end - at;
  if (length <= left) return true;
  return Fail(
      fmt::format("the field at offset {} needs {} bytes behind offset {}, but {} has only "
                  "{} left",
                  position_, length, at, frame_count_ == 1 ? "the file" : "its message", left));
}

bool ValueParser::Fail(const std::string& what) {
  std::string where;
  if (frame_count_ > 1 || finishing_) {
    const uint64_t offset = value_.message.offset;
    std::string tag;
    if (tag_ && tag_->length <= kMaxTagBytes && ReadString(*tag_, &tag)) {
      where = fmt::format("parameter {} at offset {}: ", Quote(tag), offset);
    } else {
      where = fmt::format("Value at offset {}: ", offset);
    }
    needed_ = {};
  }
  error_ = CorruptError(where + what);
  return false;
}

std::span<const std::byte> ValueParser::BytesAt(uint64_t at) const {
  if (at < window_offset_ || at - window_offset_ >= window_.size()) return {};
  return window_.subspan(at - window_offset_);
}

}  // namespace reshard
