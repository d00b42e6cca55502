#include "format/mindspore_checkpoint/checkpoint_encoder.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

using google::protobuf::io::CodedOutputStream;

// Field keys: number << 3 | wire type (SPEC.md, "Fields").
constexpr char kCheckpointValue = 0x0a;
constexpr char kValueTag = 0x0a;
constexpr char kValueTensor = 0x12;
constexpr char kValueMap = 0x1a;
constexpr char kMapTensor = 0x0a;
constexpr char kTensorDims = 0x08;
constexpr char kTensorType = 0x12;
constexpr char kTensorContent = 0x1a;

constexpr uint64_t kKeyBytes = 1;

// Bytes of a length-delimited field: key, length, and `length` bytes.
uint64_t FieldBytes(uint64_t length) {
  return kKeyBytes + CodedOutputStream::VarintSize64(length) + length;
}

// These write a field, or the part in front of its bytes, and return the end.
uint8_t* WriteNumber(char key, uint64_t number, uint8_t* to) {
  *to++ = static_cast<uint8_t>(key);
  return CodedOutputStream::WriteVarint64ToArray(number, to);
}

uint8_t* WriteText(char key, std::string_view text, uint8_t* to) {
  return std::copy(text.begin(), text.end(), WriteNumber(key, text.size(), to));
}

uint8_t* BytesOf(std::string& text) { return reinterpret_cast<uint8_t*>(text.data()); }

// The size of a TensorProto.
uint64_t TensorMessageBytes(std::string_view type, const Shape& dims, uint64_t content_bytes) {
  uint64_t bytes = FieldBytes(type.size()) + FieldBytes(content_bytes);
  for (const int64_t dim : dims) {
    bytes += kKeyBytes + CodedOutputStream::VarintSize64(static_cast<uint64_t>(dim));
  }
  return bytes;
}

// Writes a TensorProto up to its first content byte.
uint8_t* WriteTensorHeader(std::string_view type, const Shape& dims, uint64_t content_bytes,
                           uint8_t* to) {
  for (const int64_t dim : dims) to = WriteNumber(kTensorDims, static_cast<uint64_t>(dim), to);
  return WriteNumber(kTensorContent, content_bytes, WriteText(kTensorType, type, to));
}

}  // namespace

std::string EncodeCrcTrailer(uint32_t crc) {
  std::string trailer(kCrcMark);
  trailer.resize(kCrcTrailerBytes - sizeof(crc), '\0');
  for (int shift = 24; shift >= 0; shift -= 8) {
    trailer.push_back(static_cast<char>(crc >> shift & 0xff));
  }
  return trailer;
}

std::string EncodeValueHeader(std::string_view tag, DType dtype, const Shape& dims,
                              uint64_t content_bytes) {
  const std::string_view type = DTypeName(dtype);
  const uint64_t tensor_bytes = TensorMessageBytes(type, dims, content_bytes);
  const uint64_t value_bytes = FieldBytes(tag.size()) + FieldBytes(tensor_bytes);

  std::string out(FieldBytes(value_bytes) - content_bytes, '\0');
  uint8_t* to = WriteNumber(kCheckpointValue, value_bytes, BytesOf(out));
  to = WriteNumber(kValueTensor, tensor_bytes, WriteText(kValueTag, tag, to));
  WriteTensorHeader(type, dims, content_bytes, to);
  return out;
}

std::array<std::string, kMapTensors> EncodeMapTensorHeaders(
    std::string_view tag, std::span<const StoredArray::MapTensorPart, kMapTensors> parts) {
  std::array<uint64_t, kMapTensors> tensor_bytes;
  uint64_t map_bytes = 0;
  for (size_t i = 0; i < kMapTensors; ++i) {
    tensor_bytes[i] = TensorMessageBytes(parts[i].type, parts[i].shape, parts[i].content.length);
    map_bytes += FieldBytes(tensor_bytes[i]);
  }
  std::array<std::string, kMapTensors> out;
  const uint64_t value_bytes = FieldBytes(tag.size()) + FieldBytes(map_bytes);
  for (size_t i = 0; i < kMapTensors; ++i) {
    const uint64_t before = i == 0 ? FieldBytes(value_bytes) - map_bytes : 0;
    out[i].resize(before + FieldBytes(tensor_bytes[i]) - parts[i].content.length);
    uint8_t* to = BytesOf(out[i]);
    if (i == 0) {
      to = WriteText(kValueTag, tag, WriteNumber(kCheckpointValue, value_bytes, to));
      to = WriteNumber(kValueMap, map_bytes, to);
    }
    to = WriteNumber(kMapTensor, tensor_bytes[i], to);
    WriteTensorHeader(parts[i].type, parts[i].shape, parts[i].content.length, to);
  }
  return out;
}

namespace {

void AddFramesOfTensor(const ArrayHeader& tensor, std::vector<Frame>& frames) {
  uint64_t begin = 0;
  do {
    const uint64_t length = std::min(tensor.bytes - begin, kValueContentBytes);
    frames.push_back(
        {EncodeValueHeader(tensor.name, tensor.dtype, *tensor.shape, length), {begin, length}});
    begin += length;
  } while (begin < tensor.bytes);
}

void AddRenamedFrames(const StoredArray& stored, std::string_view name,
                      std::vector<Frame>& frames) {
  if (stored.kind == ArrayKind::kMapTensor) {
    const std::span<const StoredArray::MapTensorPart> parts(stored.map_tensor);
    frames.reserve(parts.size());
    for (size_t first = 0; first < parts.size(); first += kMapTensors) {
      const auto value = parts.subspan(first).first<kMapTensors>();
      auto headers = EncodeMapTensorHeaders(name, value);
      for (size_t i = 0; i < kMapTensors; ++i) {
        frames.push_back({std::move(headers[i]), value[i].content});
      }
    }
    return;
  }
  frames.reserve(stored.content.size());
  for (const ByteRange& content : stored.content) {
    frames.push_back(
        {EncodeValueHeader(name, stored.dtype, stored.shape, content.length), content});
  }
}

Status CheckType(const ArrayHeader& array) {
  const bool packed = array.opaque != nullptr && array.opaque->kind == ArrayKind::kPacked;
  const DType dtype = packed ? array.opaque->dtype : array.dtype;
  if (!packed && (array.opaque != nullptr || IsMindSporeType(dtype))) return {};
  return UnsupportedError(
      fmt::format("parameter {}: MindSpore's checkpoints have no tensor_type for {}",
                  Quote(array.name), DTypeName(dtype)));
}

void AddFrames(const ArrayHeader& array, std::vector<Frame>& frames) {
  if (array.opaque == nullptr) return AddFramesOfTensor(array, frames);
  if (array.opaque->name != array.name) return AddRenamedFrames(*array.opaque, array.name, frames);
  frames.reserve(array.opaque->framed.size());
  for (const ByteRange& value : array.opaque->framed) frames.push_back({"", value});
}

}  // namespace

Status EncodeMindSpore(size_t arrays, const ArrayHeaderAt& header_at, const TakeFrames& take) {
  std::vector<Frame> frames;
  for (size_t i = 0; i < arrays; ++i) {
    RESHARD_ASSIGN_OR_RETURN(const ArrayHeader array, header_at(i));
    RESHARD_RETURN_IF_ERROR(CheckType(array));
    frames.clear();
    AddFrames(array, frames);
    RESHARD_RETURN_IF_ERROR(take(frames));
  }
  return {};
}

}  // namespace reshard
