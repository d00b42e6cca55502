// Folders that file systems are mounted on, and processes that serve them.
#ifndef RESHARD_SRC_OS_MOUNT_POINT_H_
#define RESHARD_SRC_OS_MOUNT_POINT_H_

#include <functional>
#include <optional>
#include <string>

#include "reshard/status.h"

namespace reshard {

// Returns the type of the file system that is mounted on `path`, such as "ext4" or "fuse.reshard",
// or nothing if none is. Does not ask that file system, whose server may have died. Errors: kIo;
// kNotFound for a path in a folder that there is not.
Result<std::optional<std::string>> MountedOn(const std::string& path);

// Unmounts what is mounted on `path`: by itself where this process may, else by fusermount3.
// Errors: kAlreadyExists where it is in use; kIo.
Status Unmount(const std::string& path);

// Calls `serve` in a child process, which goes on without this one once it has called `ready`: then
// it has a session of its own, nothing to read and nowhere to write. Returns 0 then, and else what
// the child, which has failed, returned. In the child, it does not return. Only for a process with
// one thread. Errors: kIo.
Result<int> RunInBackground(const std::function<int(const std::function<void()>& ready)>& serve);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_MOUNT_POINT_H_
