#include "format/encoding/encoder.h"

#include "format/mindspore_checkpoint/checkpoint_encoder.h"
#include "format/safetensors/safetensors_encoder.h"
#include "format/safetensors/safetensors_types.h"

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
      return EncodeMindSpore(arrays, header_at, take);
    case Container::kSafetensors:
      break;
  }
  return EncodeSafetensors(metadata, arrays, header_at, take_literal, take);
}

}  // namespace reshard
