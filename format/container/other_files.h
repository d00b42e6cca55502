// Kinds of files that are given in the place of a checkpoint or of a strategy. A pure function.
#ifndef RESHARD_FORMAT_CONTAINER_OTHER_FILES_H_
#define RESHARD_FORMAT_CONTAINER_OTHER_FILES_H_

#include <string_view>

namespace reshard {

// Returns "a gzip file; unpack it first" and the like for a file that begins with `head`, where it
// shows what else it is; else nothing. Of a tar archive it takes the first 263 bytes to tell, of
// JSON those up to the key that tells.
std::string_view KindOfOtherFile(std::string_view head);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_OTHER_FILES_H_
