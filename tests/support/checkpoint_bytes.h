// Builds checkpoint bytes for tests by hand, so that they may also be wrong in any way.
//
// Shares no code with format/mindspore_checkpoint.
#ifndef RESHARD_TESTS_SUPPORT_CHECKPOINT_BYTES_H_
#define RESHARD_TESTS_SUPPORT_CHECKPOINT_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reshard {

// A varint; `bytes` > 0 pads it to that many bytes.
std::string Varint(uint64_t number, size_t bytes = 0);
// The key of a field: number and wire type.
std::string Key(uint32_t field, uint32_t wire_type);
// A varint field.
std::string NumberField(uint32_t field, uint64_t number);
// A length-delimited field: string, bytes or message.
std::string BlockField(uint32_t field, std::string_view bytes);
// Key and length of such a field, for `length` bytes that follow.
std::string BlockHeader(uint32_t field, uint64_t length);

// A TensorProto: dims, tensor_type, tensor_content, in MindSpore's order.
std::string TensorMessage(std::string_view type, const std::vector<int64_t>& dims,
                          std::string_view content);
// One Value of a checkpoint, key and length included.
std::string TensorValue(std::string_view tag, std::string_view type,
                        const std::vector<int64_t>& dims, std::string_view content);
// A Value up to its first content byte, for `content_bytes` bytes that follow.
std::string TensorValueHeader(std::string_view tag, std::string_view type,
                              const std::vector<int64_t>& dims, uint64_t content_bytes);
// A Value of a MapTensor; `tensors` are TensorMessages: keys, values, status.
std::string MapValue(std::string_view tag, const std::vector<std::string>& tensors);
// The CRC trailer: the mark and a 10-byte big-endian number.
std::string CrcTrailer(uint64_t crc);

}  // namespace reshard

#endif  // RESHARD_TESTS_SUPPORT_CHECKPOINT_BYTES_H_
