// Tells what a file is that was given as a strategy and is none.
#ifndef RESHARD_SRC_MINDSPORE_FOREIGN_FILE_H_
#define RESHARD_SRC_MINDSPORE_FOREIGN_FILE_H_

#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {

// As much of a file as ForeignFileError looks at.
inline constexpr size_t kForeignHeadBytes = size_t{128} << 10;

inline constexpr std::string_view kGroupInfoKind = "a group_info file (groups of ranks)";

// Returns what the file that begins with `head` is, where it is of a kind that users mistake for a
// strategy or a group_info file (weights, encrypted weights, safetensors, a group_info file, an
// empty file, what KindOfOtherFile knows); else nothing.
std::string_view KindOfForeignFile(std::string_view head);

// Returns why the file that begins with `head` is no strategy, where it is of a kind that users
// mistake for one (kCorrupt); else ok.
Status ForeignFileError(const std::string& path, std::string_view head);

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_FOREIGN_FILE_H_
