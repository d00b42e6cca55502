// Encoding of a safetensors file, byte for byte as the library writes it (SPEC.md, "Writing").
//
// Pure functions, for any thread.
#ifndef RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_ENCODER_H_
#define RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "format/container/container.h"
#include "reshard/status.h"

namespace reshard {

// What a header has before its CRC-32, and that, the string's last quote included: as many bytes
// for any number, with spaces behind it, as JSON allows.
inline constexpr std::string_view kCrcMember = "\"crc_num\":\"";
std::string CrcMemberValue(uint32_t crc);

// As Container::encode. The header comes first; tensors are ordered by dtype and
// name, so all of them are asked for before the first is taken, and their names are held meanwhile.
// Errors: kUnsupported for what safetensors has no type for, a name that is no UTF-8 or is
// "__metadata__", and a header beyond 100,000,000 bytes; those of `header_at` and of `take`.
Status EncodeSafetensors(const FileMetadata& metadata, size_t arrays,
                         const ArrayHeaderAt& header_at, const TakeLiteral& take_literal,
                         const TakeFrames& take);

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_ENCODER_H_
