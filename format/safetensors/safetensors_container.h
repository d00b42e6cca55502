// The container of safetensors files (SPEC.md): a header of JSON before all contents.
#ifndef RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_CONTAINER_H_
#define RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_CONTAINER_H_

#include "format/container/container.h"

namespace reshard {

// Its signature: eight bytes of length, then the begin of JSON.
extern const Container kSafetensorsContainer;

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_CONTAINER_H_
