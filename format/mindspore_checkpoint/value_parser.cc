#include "format/mindspore_checkpoint/value_parser.h"

#include <fmt/format.h>

#include <algorithm>
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

// Few tensors have more dims.
constexpr size_t kUsualDims = 4;

}  // namespace

ValueParser::ValueParser(uint64_t end) : frames_{} { frames_[0] = {Message::kCheckpoint, end}; }

Result<ValueParser::Event> ValueParser::Advance(uint64_t offset,
                                                std::span<const std::byte> window) {
  window_offset_ = offset;
  window_ = window;
  needed_ = {};
  for (;;) {
    bool parsed = true;
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

// A length-delimited field, whose bytes [begin, begin + length) lie in the current message: a
// message to enter, a string to note, or something to hop over.
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

// Reads the strings of a Value whose message is over.
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
  if (!kind_) return Fail("it holds neither a tensor nor a MapTensor");
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
