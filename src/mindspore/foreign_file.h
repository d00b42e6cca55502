// Tells the kind of a file that was given as a strategy and is not one.
#ifndef RESHARD_SRC_MINDSPORE_FOREIGN_FILE_H_
#define RESHARD_SRC_MINDSPORE_FOREIGN_FILE_H_

#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {

// As much of a file as ForeignFileError looks at.
inline constexpr size_t kForeignHeadBytes = size_t{128} << 10;

inline constexpr std::string_view kGroupInfoKind = "a group_info file (groups of ranks)";

// Returns the kind of a file that begins with `head`, if users mistake this kind for a strategy or
// a group_info file: weights, encrypted weights, safetensors, a group_info file, an empty file, and
// the kinds that KindOfOtherFile knows. Else returns "".
std::string_view KindOfForeignFile(std::string_view head);

// Returns kCorrupt with the reason if the file that begins with `head` is of a kind that users
// mistake for a strategy; else ok.
Status ForeignFileError(const std::string& path, std::string_view head);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_FOREIGN_FILE_H_
