// The names of the files of a checkpoint of PyTorch's distributed checkpoint, DCP (SPEC.md).
//
// Pure; any thread.
#ifndef RESHARD_FORMAT_DCP_DCP_NAMES_H_
#define RESHARD_FORMAT_DCP_DCP_NAMES_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace reshard {

// The metadata of all ranks.
inline constexpr std::string_view kDcpMetadataFile = ".metadata";
// Of files with items.
inline constexpr std::string_view kDcpExtension = ".distcp";

// Parses __N.metadata, the metadata of rank N alone. Returns N; no value for another name.
std::optional<int64_t> DcpMetadataRank(std::string_view name);

// Whether a path is one of a file in the folder of the checkpoint, or in a folder below.
bool IsDcpPath(std::string_view path);

}  // namespace reshard

#endif  // RESHARD_FORMAT_DCP_DCP_NAMES_H_
