// Encoding of a checkpoint: the bytes that MindSpore writes before the content of each Value
// (SPEC.md, "The bytes").
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_HEADER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/box.h"
#include "reshard/dtype.h"

namespace reshard {

// A tensor with more content bytes than this is written as several Values, cut at multiples of it.
inline constexpr uint64_t kValueContentBytes = uint64_t{512} << 20;

// Returns everything of a Value up to the first content byte, for `content_bytes` bytes of content
// that follow. Content is the last field, so the next Value may begin right behind it.
std::string EncodeValueHeader(std::string_view tag, DType dtype, const Shape& dims,
                              uint64_t content_bytes);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_VALUE_HEADER_H_
