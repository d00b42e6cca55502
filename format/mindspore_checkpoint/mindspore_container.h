// The container of MindSpore's .ckpt files (SPEC.md): protobuf, Values one behind the other.
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_MINDSPORE_CONTAINER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_MINDSPORE_CONTAINER_H_

#include "format/container/container.h"

namespace reshard {

// Has no signature: any file may be one. A file without a byte is one without arrays.
extern const Container kMindSporeContainer;

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_MINDSPORE_CONTAINER_H_
