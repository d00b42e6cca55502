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

// The part of a header before its CRC-32, and the CRC-32 with the string's last quote. The length
// is the same for any number, as spaces follow the number, which JSON allows.
inline constexpr std::string_view kCrcMember = "\"crc_num\":\"";
std::string CrcMemberValue(uint32_t crc);

// As Container::encode. The header comes first, and tensors are ordered by dtype and name. So all
// of them are asked for before the first is taken, and their names are held meanwhile.
// Errors:
//   kUnsupported: a tensor without a safetensors type; a name that is not UTF-8 or is
//   "__metadata__";
//     a header beyond 100,000,000 bytes
//   as `header_at` and `take`
Status EncodeSafetensors(const FileMetadata& metadata, size_t arrays,
                         const ArrayHeaderAt& header_at, const TakeLiteral& take_literal,
                         const TakeFrames& take);

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_ENCODER_H_
