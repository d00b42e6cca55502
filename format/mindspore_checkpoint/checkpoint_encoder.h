// Encoding of a checkpoint of MindSpore: headers between contents (SPEC.md, "The bytes").
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENCODER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENCODER_H_

#include <cstddef>

#include "format/container/array_frames.h"
#include "reshard/status.h"

namespace reshard {

// As Encode (format/encoding/encoder.h). A tensor becomes Values of up to kValueContentBytes, each
// with a header. Texts and MapTensors are taken as they stand, headers included, where they keep
// their names, else with headers of the new one.
Status EncodeMindSpore(size_t arrays, const ArrayHeaderAt& header_at, const TakeFrames& take);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_ENCODER_H_
