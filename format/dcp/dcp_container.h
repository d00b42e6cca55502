// The container of the files of a DCP checkpoint (SPEC.md). A file alone does not say what it
// holds, so that no file is known to be one: src/sharded makes their tables.
#ifndef RESHARD_FORMAT_DCP_DCP_CONTAINER_H_
#define RESHARD_FORMAT_DCP_DCP_CONTAINER_H_

#include "format/container/container.h"

namespace reshard {

extern const Container kDcpContainer;

}  // namespace reshard

#endif  // RESHARD_FORMAT_DCP_DCP_CONTAINER_H_
