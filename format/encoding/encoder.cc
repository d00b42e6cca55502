#include "format/encoding/encoder.h"

#include "format/mindspore_checkpoint/checkpoint_encoder.h"

namespace reshard {

Status Encode(Container container, size_t arrays, const ArrayHeaderAt& header_at,
              const TakeFrames& take) {
  switch (container) {
    case Container::kMindSpore:
      return EncodeMindSpore(arrays, header_at, take);
  }
  return InternalError("a container that nothing writes");
}

}  // namespace reshard
