#include "format/encoding/encoder.h"

#include "format/mindspore_checkpoint/checkpoint_encoder.h"

namespace reshard {

Status Encode(Container container, size_t arrays, const ArrayHeaderAt& header_at,
              const TakeFrames& take) {
  switch (container) {
    case Container::kMindSpore:
      break;
  }
  return EncodeMindSpore(arrays, header_at, take);
}

}  // namespace reshard
