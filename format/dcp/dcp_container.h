// The container of DCP files (SPEC.md). A file alone does not state its arrays, so its bytes are
// never recognized: the metadata tells them (dcp_items.h).
#ifndef RESHARD_FORMAT_DCP_DCP_CONTAINER_H_
#define RESHARD_FORMAT_DCP_DCP_CONTAINER_H_

#include "format/container/container.h"

namespace reshard {

extern const Container kDcpContainer;

}  // namespace reshard

#endif  // RESHARD_FORMAT_DCP_DCP_CONTAINER_H_
