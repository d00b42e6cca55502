// Encoding of a checkpoint of MindSpore: the headers between contents (SPEC.md, "The bytes").
//
// Pure functions, for any thread.
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENCODER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/container/container.h"
#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// A tensor with more content bytes is written as several Values, cut at multiples of this.
inline constexpr uint64_t kValueContentBytes = uint64_t{512} << 20;

// Whether a checkpoint has a tensor_type for tensors of `dtype`.
constexpr bool IsMindSporeType(DType dtype) { return dtype <= DType::kString; }

// Returns the trailer that states `crc`, the CRC-32 of everything before it.
std::string EncodeCrcTrailer(uint32_t crc);

// Returns everything of a Value up to the first content byte, for `content_bytes` bytes of content
// that follow. Content is the last field, so the next Value may begin right behind it.
std::string EncodeValueHeader(std::string_view tag, DType dtype, const Shape& dims,
                              uint64_t content_bytes);

// Returns the headers in front of the three contents of a MapTensor's Value. The last content ends
// the Value.
std::array<std::string, kMapTensors> EncodeMapTensorHeaders(
    std::string_view tag, std::span<const StoredArray::MapTensorPart, kMapTensors> parts);

// As Container::encode, without a CRC. A tensor becomes Values of up to kValueContentBytes, each
// with a header. Texts and MapTensors are copied with their headers. If an array gets a new name,
// its headers are made again.
Status EncodeMindSpore(size_t arrays, const ArrayHeaderAt& header_at, const TakeFrames& take);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENCODER_H_
