// Folders that file systems are mounted on, and processes that serve them.
#ifndef RESHARD_SRC_OS_MOUNT_POINT_H_
#define RESHARD_SRC_OS_MOUNT_POINT_H_

#include <functional>
#include <optional>
#include <string>

#include "reshard/status.h"

namespace reshard {

// Returns the type of the file system that is mounted on `path`, such as "ext4" or "fuse.reshard";
// no value without a mount. Does not ask that file system, whose server may have died. Errors: kIo;
// kNotFound for a path in a folder that does not exist.
Result<std::optional<std::string>> MountedOn(const std::string& path);

// Returns the type of the file system that `place` lies on, an absolute path without links and
// dots. Does not ask that file system. Errors: kIo.
Result<std::string> MountTypeAbove(const std::string& place);

// Unmounts the file system on `path`: directly if this process may, else by fusermount3. Errors:
// kAlreadyExists if it is in use; kIo.
Status Unmount(const std::string& path);

// Calls `serve` in a child process. Once the child has called `ready`, it goes on without this
// process: it has its own session, and its standard streams are empty. Returns 0 then. If the child
// fails before that, returns its result. In the child, the function does not return. Only for a
// process with one thread. Errors: kIo.
Result<int> RunInBackground(const std::function<int(const std::function<void()>& ready)>& serve);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_MOUNT_POINT_H_
