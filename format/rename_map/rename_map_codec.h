// Decoding and encoding of a rename map (SPEC.md): names of the source to names of the target.
#ifndef RESHARD_FORMAT_RENAME_MAP_RENAME_MAP_CODEC_H_
#define RESHARD_FORMAT_RENAME_MAP_RENAME_MAP_CODEC_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

inline constexpr uint64_t kMaxRenameMapBytes = uint64_t{64} << 20;

// Parses a file without recursion. Does not check whether names and patterns are allowed. `path`
// names the file in messages. Errors: kInvalidArgument; kCorrupt for a zero byte.
Result<Renames> ParseRenameMap(const std::string& path, std::string_view bytes);

// Returns a file with these names and patterns, which are UTF-8. It ends in a newline.
std::string RenameMapText(const Renames& renames);

}  // namespace reshard

#endif  // RESHARD_FORMAT_RENAME_MAP_RENAME_MAP_CODEC_H_
