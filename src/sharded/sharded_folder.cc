#include "src/sharded/sharded_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/container_table/container_table.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/sharded/shard_name.h"

namespace reshard {
namespace {

constexpr std::string_view kShardsBelow = "sharded";
constexpr std::string_view kIndexExtension = ".safetensors.index.json";

bool IsShard(const DirectoryEntry& entry) {
  return !entry.is_directory && ParseShardName(entry.name).has_value();
}

// Whether an entry is of a folder of full tensors, or of a folder of ranks.
bool IsOfOther(const DirectoryEntry& entry) {
  if (entry.is_directory) return entry.name.starts_with("rank_");
  return !entry.name.starts_with('.') &&
         (entry.name.ends_with(kIndexExtension) || ContainerNamed(entry.name) != nullptr);
}

Result<std::optional<ShardedFolder>> ShardsIn(const std::string& path, std::string below,
                                              std::vector<DirectoryEntry> entries) {
  if (std::none_of(entries.begin(), entries.end(), IsShard)) return std::optional<ShardedFolder>();
  FirstFew others;
  for (const DirectoryEntry& entry : entries) {
    if (!IsShard(entry) && IsOfOther(entry)) others.Add(Escape(entry.name));
  }
  if (others.count() > 0) {
    const auto shard = std::find_if(entries.begin(), entries.end(), IsShard);
    return MismatchError(fmt::format(
        "{}: holds shards of PyTorch's HuggingFaceStorageWriter ({}), and beside them {} of "
        "another checkpoint (PyTorch takes all safetensors files as shards); move one of the two "
        "into a folder of its own",
        Escape(PathIn(path, below)), Escape(shard->name), others.Joined()));
  }
  return std::optional(
      ShardedFolder{ShardedFamily::kHuggingFaceShards, std::move(below), std::move(entries)});
}

}  // namespace

Result<std::optional<ShardedFolder>> FindShardedFolder(const std::string& path) {
  const Storage& storage = Storage::Of(path);
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, storage.KindOf(path));
  if (kind != PathKind::kDirectory) return std::optional<ShardedFolder>();
  RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage.List(path));
  const bool has_own = std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return IsShard(entry) || IsOfOther(entry);
  });
  if (has_own) return ShardsIn(path, "", std::move(entries));
  const bool has_below = std::any_of(
      entries.begin(), entries.end(),
      [](const DirectoryEntry& entry) { return entry.is_directory && entry.name == kShardsBelow; });
  if (!has_below) return std::optional<ShardedFolder>();
  const std::string below(kShardsBelow);
  RESHARD_ASSIGN_OR_RETURN(entries, storage.List(PathIn(path, below)));
  return ShardsIn(path, below + "/", std::move(entries));
}

}  // namespace reshard
