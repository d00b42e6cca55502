// The metadata DCP_SHARDING_INFO: the begin of each array of a safetensors file in its tensor.
// PyTorch writes it into the shards that its HuggingFaceStorageWriter saves.
//
// Pure; any thread.
#ifndef RESHARD_FORMAT_SAFETENSORS_SHARDING_INFO_H_
#define RESHARD_FORMAT_SAFETENSORS_SHARDING_INFO_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

inline constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";

// By the names of tensors: the index of the first element of the array.
using SavedOffsets = std::map<std::string, std::vector<int64_t>>;

// Parses {"w": {"saved_offsets": [2, 0]}, ...}. Errors: kCorrupt for other text.
Result<SavedOffsets> ParseShardingInfo(std::string_view text);

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SHARDING_INFO_H_
