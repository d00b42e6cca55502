#include "tests/support/checkpoint_bytes.h"

namespace reshard {

std::string Varint(uint64_t number, size_t bytes) {
  std::string out;
  do {
    out.push_back(static_cast<char>(number & 0x7f));
    number >>= 7;
  } while (number != 0 || out.size() < bytes);
  for (size_t i = 0; i + 1 < out.size(); ++i) out[i] = static_cast<char>(out[i] | '\x80');
  return out;
}

std::string Key(uint32_t field, uint32_t wire_type) {
  return Varint(uint64_t{field} << 3 | wire_type);
}

std::string NumberField(uint32_t field, uint64_t number) { return Key(field, 0) + Varint(number); }

std::string BlockHeader(uint32_t field, uint64_t length) { return Key(field, 2) + Varint(length); }

std::string BlockField(uint32_t field, std::string_view bytes) {
  return BlockHeader(field, bytes.size()).append(bytes);
}

std::string TensorMessage(std::string_view type, const std::vector<int64_t>& dims,
                          std::string_view content) {
  std::string out;
  for (const int64_t dim : dims) out += NumberField(1, static_cast<uint64_t>(dim));
  return out + BlockField(2, type) + BlockField(3, content);
}

std::string TensorValue(std::string_view tag, std::string_view type,
                        const std::vector<int64_t>& dims, std::string_view content) {
  return TensorValueHeader(tag, type, dims, content.size()).append(content);
}

std::string TensorValueHeader(std::string_view tag, std::string_view type,
                              const std::vector<int64_t>& dims, uint64_t content_bytes) {
  std::string tensor;
  for (const int64_t dim : dims) tensor += NumberField(1, static_cast<uint64_t>(dim));
  tensor += BlockField(2, type) + BlockHeader(3, content_bytes);
  const std::string value =
      BlockField(1, tag) + BlockHeader(2, tensor.size() + content_bytes) + tensor;
  return BlockHeader(1, value.size() + content_bytes) + value;
}

std::string MapValue(std::string_view tag, const std::vector<std::string>& tensors) {
  std::string map;
  for (const std::string& tensor : tensors) map += BlockField(1, tensor);
  return BlockField(1, BlockField(1, tag) + BlockField(3, map));
}

std::string CrcTrailer(uint64_t crc) {
  std::string out = "crc_num";
  out.append(2, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(crc >> shift));
  return out;
}

}  // namespace reshard
