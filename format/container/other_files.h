// Kinds of files that are given in the place of a checkpoint or of a strategy. A pure function.
#ifndef RESHARD_FORMAT_CONTAINER_OTHER_FILES_H_
#define RESHARD_FORMAT_CONTAINER_OTHER_FILES_H_

#include <string_view>

namespace reshard {

// Returns the kind of a file that begins with `head`, such as "a gzip file; unpack it first"; "" if
// it is unknown. A tar archive needs the first 263 bytes; JSON needs the bytes up to its typical
// key.
std::string_view KindOfOtherFile(std::string_view head);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_OTHER_FILES_H_
