// The folder that a target is mounted on: the check of the folder, and the end of a mount.
#ifndef RESHARD_SRC_FRONTEND_MOUNT_PLACE_H_
#define RESHARD_SRC_FRONTEND_MOUNT_PLACE_H_

#include <functional>
#include <string>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// The type of file system that mounts of targets have.
inline constexpr const char* kMountType = "fuse.reshard";

// Returns ok if a target of `source` may be mounted on `folder`.
// Errors:
//   kInvalidArgument: the folder lies in the source, or the source in the folder
//   kNotFound: there is no folder
//   kAlreadyExists: the folder is not empty, has a mount, or is not a folder
//   kIo
Status CheckMountPlace(const std::string& folder, const SourceSpec& source);

// Ends the mount of a target on `folder`. Errors: kInvalidArgument if there is none; as Unmount.
Status EndMount(const std::string& folder);

// Calls `serve` in a process that goes on in the background (RunInBackground).
Result<int> ServeInBackground(const std::function<int(const std::function<void()>& ready)>& serve);

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_MOUNT_PLACE_H_
