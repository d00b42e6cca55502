// ServeByFuse: a target as a read-only file system, by the low-level interface of libfuse.
#ifndef RESHARD_TOOLS_MOUNT_FUSE_SERVER_H_
#define RESHARD_TOOLS_MOUNT_FUSE_SERVER_H_

#include "reshard/status.h"
#include "tools/cli/mount_server.h"

namespace reshard {

// A MountServer. Once at a time in a process.
Status ServeByFuse(const MountRequest& request);

}  // namespace reshard

#endif  // RESHARD_TOOLS_MOUNT_FUSE_SERVER_H_
