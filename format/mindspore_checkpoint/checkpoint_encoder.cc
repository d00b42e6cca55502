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

void AppendNumber(char key, uint64_t number, std::string* out) {
  std::array<uint8_t, 10> varint;
  const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(number, varint.data());
  out->push_back(key);
  out->append(reinterpret_cast<const char*>(varint.data()),
              static_cast<size_t>(end - varint.data()));
}

// The size of a TensorProto.
uint64_t TensorMessageBytes(std::string_view type, const Shape& dims, uint64_t content_bytes) {
  uint64_t bytes = FieldBytes(type.size()) + FieldBytes(content_bytes);
  for (const int64_t dim : dims) {
    bytes += kKeyBytes + CodedOutputStream::VarintSize64(static_cast<uint64_t>(dim));
  }
  return bytes;
}

// Appends a TensorProto up to its first content byte.
void AppendTensorHeader(std::string_view type, const Shape& dims, uint64_t content_bytes,
                        std::string* out) {
  for (const int64_t dim : dims) AppendNumber(kTensorDims, static_cast<uint64_t>(dim), out);
  AppendNumber(kTensorType, type.size(), out);
  *out += type;
  AppendNumber(kTensorContent, content_bytes, out);
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

  std::string out;
  out.reserve(FieldBytes(value_bytes) - content_bytes);
  AppendNumber(kCheckpointValue, value_bytes, &out);
  AppendNumber(kValueTag, tag.size(), &out);
  out += tag;
  AppendNumber(kValueTensor, tensor_bytes, &out);
  AppendTensorHeader(type, dims, content_bytes, &out);
  return out;
}

std::array<std::string, kMapTensors> EncodeMapTensorHeaders(
    std::string_view tag, std::span<const MapTensorPart, kMapTensors> parts) {
  std::array<uint64_t, kMapTensors> tensor_bytes;
  uint64_t map_bytes = 0;
  for (size_t i = 0; i < kMapTensors; ++i) {
    tensor_bytes[i] = TensorMessageBytes(parts[i].type, parts[i].shape, parts[i].content.length);
    map_bytes += FieldBytes(tensor_bytes[i]);
  }
  std::array<std::string, kMapTensors> out;
  AppendNumber(kCheckpointValue, FieldBytes(tag.size()) + FieldBytes(map_bytes), &out[0]);
  AppendNumber(kValueTag, tag.size(), &out[0]);
  out[0] += tag;
  AppendNumber(kValueMap, map_bytes, &out[0]);
  for (size_t i = 0; i < kMapTensors; ++i) {
    AppendNumber(kMapTensor, tensor_bytes[i], &out[i]);
    AppendTensorHeader(parts[i].type, parts[i].shape, parts[i].content.length, &out[i]);
  }
  return out;
}

namespace {

std::vector<Frame> FramesOfTensor(const ArrayHeader& tensor) {
  std::vector<Frame> frames;
  uint64_t begin = 0;
  do {
    const uint64_t length = std::min(tensor.bytes - begin, kValueContentBytes);
    frames.push_back(
        {EncodeValueHeader(tensor.name, tensor.dtype, *tensor.shape, length), {begin, length}});
    begin += length;
  } while (begin < tensor.bytes);
  return frames;
}

std::vector<Frame> RenamedFrames(const StoredArray& stored, std::string_view name) {
  std::vector<Frame> frames;
  if (stored.kind == ArrayKind::kMapTensor) {
    const std::span<const MapTensorPart> parts(stored.map_tensor);
    frames.reserve(parts.size());
    for (size_t first = 0; first < parts.size(); first += kMapTensors) {
      const auto value = parts.subspan(first).first<kMapTensors>();
      auto headers = EncodeMapTensorHeaders(name, value);
      for (size_t i = 0; i < kMapTensors; ++i) {
        frames.push_back({std::move(headers[i]), value[i].content});
      }
    }
    return frames;
  }
  frames.reserve(stored.content.size());
  for (const ByteRange& content : stored.content) {
    frames.push_back(
        {EncodeValueHeader(name, stored.dtype, stored.shape, content.length), content});
  }
  return frames;
}

Status CheckType(const ArrayHeader& array) {
  const bool packed = array.opaque != nullptr && array.opaque->kind == ArrayKind::kPacked;
  const DType dtype = packed ? array.opaque->dtype : array.dtype;
  if (!packed && (array.opaque != nullptr || IsMindSporeType(dtype))) return {};
  return UnsupportedError(
      fmt::format("parameter {}: MindSpore's checkpoints have no tensor_type for {}",
                  Quote(array.name), DTypeName(dtype)));
}

std::vector<Frame> FramesOf(const ArrayHeader& array) {
  if (array.opaque == nullptr) return FramesOfTensor(array);
  if (array.opaque->name != array.name) return RenamedFrames(*array.opaque, array.name);
  std::vector<Frame> frames;
  frames.reserve(array.opaque->framed.size());
  for (const ByteRange& value : array.opaque->framed) frames.push_back({"", value});
  return frames;
}

}  // namespace

Status EncodeMindSpore(size_t arrays, const ArrayHeaderAt& header_at, const TakeFrames& take) {
  for (size_t i = 0; i < arrays; ++i) {
    RESHARD_ASSIGN_OR_RETURN(const ArrayHeader array, header_at(i));
    RESHARD_RETURN_IF_ERROR(CheckType(array));
    RESHARD_RETURN_IF_ERROR(take(FramesOf(array)));
  }
  return {};
}

}  // namespace reshard
