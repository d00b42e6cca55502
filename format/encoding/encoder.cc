#include "format/encoding/encoder.h"

#include <utility>

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "format/safetensors/safetensors_encoder.h"
#include "format/safetensors/safetensors_types.h"
#include "src/base/status_macros.h"

namespace reshard {

bool CanHold(Container container, ArrayKind kind, DType dtype) {
  switch (container) {
    case Container::kMindSpore:
      return kind != ArrayKind::kPacked && (kind != ArrayKind::kTensor || IsMindSporeType(dtype));
    case Container::kSafetensors:
      break;
  }
  return (kind == ArrayKind::kTensor || kind == ArrayKind::kPacked) &&
         SafetensorsTypeOf(dtype) != nullptr;
}

std::string_view ExtensionOf(Container container) {
  return container == Container::kMindSpore ? ".ckpt" : ".safetensors";
}

Status Encode(Container container, const FileMetadata& metadata, size_t arrays,
              const ArrayHeaderAt& header_at, const TakeLiteral& take_literal,
              const TakeFrames& take) {
  switch (container) {
    case Container::kMindSpore:
      RESHARD_RETURN_IF_ERROR(EncodeMindSpore(arrays, header_at, take));
      return metadata.states_crc ? take_literal(EncodeCrcTrailer(0)) : Status();
    case Container::kSafetensors:
      break;
  }
  return EncodeSafetensors(metadata, arrays, header_at, take_literal, take);
}

CrcPlace CrcPlaceOf(Container container) {
  return container == Container::kMindSpore ? CrcPlace::kBehind : CrcPlace::kInHeader;
}

Result<CrcText> TextOfCrc(CrcPlace place, std::span<const std::byte> head, uint64_t file_size,
                          uint32_t crc) {
  if (place == CrcPlace::kBehind) {
    std::string bytes = EncodeCrcTrailer(crc);
    if (file_size >= bytes.size()) return CrcText{file_size - bytes.size(), std::move(bytes)};
  } else {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    const size_t member = text.find(kCrcMember);
    if (member != std::string_view::npos) {
      return CrcText{member + kCrcMember.size(), CrcMemberValue(crc)};
    }
  }
  return CorruptError("there is no place in it that states a CRC-32");
}

}  // namespace reshard
