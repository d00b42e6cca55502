// The names that PyTorch's HuggingFaceStorageWriter gives to the shards of a checkpoint:
// shard-KKKKK-model-NNNNN-of-MMMMM.safetensors.
//
// Pure; any thread.
#ifndef RESHARD_SRC_SHARDED_SHARD_NAME_H_
#define RESHARD_SRC_SHARDED_SHARD_NAME_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace reshard {

struct ShardName {
  uint64_t shard = 0;  // the rank that wrote it, plus 1
  uint64_t file = 0;   // one of `files`, from 1 on
  uint64_t files = 0;
};

// Returns no value for another name. Numbers have at least five digits, and are less than 2^63.
std::optional<ShardName> ParseShardName(std::string_view name);

}  // namespace reshard

#endif  // RESHARD_SRC_SHARDED_SHARD_NAME_H_
