// The metadata of a shard. DCP_SHARDING_INFO has the begin of each array in its tensor: PyTorch
// writes it into the shards that its HuggingFaceStorageWriter saves. `reshard` has facts about the
// set of all shards.
//
// Pure; any thread.
#ifndef RESHARD_FORMAT_SAFETENSORS_SHARDING_INFO_H_
#define RESHARD_FORMAT_SAFETENSORS_SHARDING_INFO_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

inline constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";

inline constexpr std::string_view kShardSet = "reshard";

// By the names of tensors: the index of the first element of the array.
using SavedOffsets = std::map<std::string, std::vector<int64_t>>;

// Parses {"w": {"saved_offsets": [2, 0]}, ...}. Errors: kCorrupt for other text.
Result<SavedOffsets> ParseShardingInfo(std::string_view text);

// Facts about a set of shards, which its files may state.
struct ShardSet {
  std::map<std::string, Shape> full_shapes;  // by the names of tensors
  std::optional<uint64_t> files;             // that the set has
};

// Parses {"global_shapes": {"w": [8, 4], ...}, "files": 4}; other members do not count. Errors:
// kCorrupt for other text.
Result<ShardSet> ParseShardSet(std::string_view text);

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SHARDING_INFO_H_
