// Encoding of a checkpoint: the bytes that MindSpore writes before the content of each Value
// (SPEC.md, "The bytes").
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_HEADER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_HEADER_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/box.h"
#include "reshard/dtype.h"
#include "reshard/stored_array.h"

namespace reshard {

// A tensor with more content bytes than this is written as several Values, cut at multiples of it.
inline constexpr uint64_t kValueContentBytes = uint64_t{512} << 20;

// Returns everything of a Value up to the first content byte, for `content_bytes` bytes of content
// that follow. Content is the last field, so the next Value may begin right behind it.
std::string EncodeValueHeader(std::string_view tag, DType dtype, const Shape& dims,
                              uint64_t content_bytes);

// Returns what stands before each of the three contents of a Value of a MapTensor; the last content
// ends the Value.
std::array<std::string, kMapTensors> EncodeMapTensorHeaders(
    std::string_view tag, std::span<const MapTensorPart, kMapTensors> parts);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_HEADER_H_
