#include "format/mindspore_checkpoint/value_header.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>

namespace reshard {
namespace {

using google::protobuf::io::CodedOutputStream;

// Field keys: number << 3 | wire type (SPEC.md, "Fields").
constexpr char kCheckpointValue = 0x0a;
constexpr char kValueTag = 0x0a;
constexpr char kValueTensor = 0x12;
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
  out->append(varint.begin(), varint.begin() + (end - varint.data()));
}

}  // namespace

std::string EncodeValueHeader(std::string_view tag, DType dtype, const Shape& dims,
                              uint64_t content_bytes) {
  const std::string_view type = DTypeName(dtype);
  uint64_t tensor_bytes = FieldBytes(type.size()) + FieldBytes(content_bytes);
  for (const int64_t dim : dims) {
    tensor_bytes += kKeyBytes + CodedOutputStream::VarintSize64(static_cast<uint64_t>(dim));
  }
  const uint64_t value_bytes = FieldBytes(tag.size()) + FieldBytes(tensor_bytes);

  std::string out;
  out.reserve(FieldBytes(value_bytes) - content_bytes);
  AppendNumber(kCheckpointValue, value_bytes, &out);
  AppendNumber(kValueTag, tag.size(), &out);
  out += tag;
  AppendNumber(kValueTensor, tensor_bytes, &out);
  for (const int64_t dim : dims) AppendNumber(kTensorDims, static_cast<uint64_t>(dim), &out);
  AppendNumber(kTensorType, type.size(), &out);
  out += type;
  AppendNumber(kTensorContent, content_bytes, &out);
  return out;
}

}  // namespace reshard
