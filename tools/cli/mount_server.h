// MountServer: the function that serves a target as a file system, which the program reshard-mount
// has (tools/mount) and `reshard` has not.
#ifndef RESHARD_TOOLS_CLI_MOUNT_SERVER_H_
#define RESHARD_TOOLS_CLI_MOUNT_SERVER_H_

#include <functional>
#include <string>

#include "reshard/status.h"
#include "reshard/target_view.h"

namespace reshard {

struct MountRequest {
  const TargetView& view;
  std::string folder;
  bool caches = false;               // files' bytes stay in the page cache, and files can be mapped
  bool ends_with_input = false;      // if standard input is a pipe: when that ends
  bool allows_others = false;        // other users may read
  std::function<void()> ready = {};  // called when the first request of the kernel is answered
  // Called with each reason for a read that failed, once; by one thread at a time.
  std::function<void(const Status&)> failed = {};
};

// Mounts the target and serves it until it is unmounted, its input ends, or a signal ends it
// (SIGINT, SIGTERM, SIGHUP). Errors: kIo.
using MountServer = Status (*)(const MountRequest&);

}  // namespace reshard

#endif  // RESHARD_TOOLS_CLI_MOUNT_SERVER_H_
