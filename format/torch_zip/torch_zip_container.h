// The container of files that torch.save writes (SPEC.md): zips, which are only read.
#ifndef RESHARD_FORMAT_TORCH_ZIP_TORCH_ZIP_CONTAINER_H_
#define RESHARD_FORMAT_TORCH_ZIP_TORCH_ZIP_CONTAINER_H_

#include "format/container/container.h"

namespace reshard {

// Its signature is a zip's. No extension: .pt, .pth and .bin files are of many kinds.
extern const Container kTorchZipContainer;

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_TORCH_ZIP_CONTAINER_H_
