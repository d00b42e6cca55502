#include "src/sharded/sharded_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/container_table/container_table.h"
#include "format/dcp/dcp_names.h"
#include "format/mindformers_metadata/file_names.h"
#include "format/weight_map/weight_map_codec.h"
#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/io/storage.h"
#include "src/sharded/shard_name.h"
#include "src/sharded/torch_rank_files.h"
#include "src/sharded/unread_families.h"

namespace reshard {
namespace {

constexpr std::string_view kShardsBelow = "sharded";

bool IsShard(const DirectoryEntry& entry) {
  return !entry.is_directory && ParseShardName(entry.name).has_value();
}

bool IsRankFolder(const DirectoryEntry& entry) {
  return entry.is_directory && entry.name.starts_with("rank_");
}

Result<std::optional<ShardedFolder>> ShardsIn(const std::string& path, std::string below,
                                              std::vector<DirectoryEntry> entries) {
  if (std::none_of(entries.begin(), entries.end(), IsShard)) return std::optional<ShardedFolder>();
  FirstFew others;
  for (const DirectoryEntry& entry : entries) {
    if (!IsShard(entry) && IsWholeOrOfRanks(entry)) others.Add(Escape(entry.name));
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

bool IsOfMindFormers(const DirectoryEntry& entry) {
  return !entry.is_directory && ParseMindFormersName(entry.name).has_value();
}

// Whether an entry is of a folder of full tensors, or a shard.
bool IsWhole(const DirectoryEntry& entry) {
  return !entry.is_directory && IsWholeOrOfRanks(entry) && !IsOfMindFormers(entry);
}

bool IsTorchRank(const DirectoryEntry& entry) {
  return !entry.is_directory && ParseTorchRankName(entry.name).has_value();
}

// Returns the folder of files of torch.save, if these are its entries.
Result<std::optional<ShardedFolder>> TorchRanksIn(const std::string& path,
                                                  std::vector<DirectoryEntry> entries) {
  FirstFew others;
  for (const DirectoryEntry& entry : entries) {
    if (IsWholeOrOfRanks(entry)) others.Add(Escape(entry.name));
  }
  if (others.count() > 0) {
    const auto rank = std::find_if(entries.begin(), entries.end(), IsTorchRank);
    return MismatchError(fmt::format(
        "{}: holds files that ranks saved with torch.save ({}), and beside them {} of another "
        "checkpoint; move one of the two into a folder of its own",
        Escape(path), Escape(rank->name), others.Joined()));
  }
  return std::optional(ShardedFolder{ShardedFamily::kTorchRanks, "", std::move(entries)});
}

bool IsDcpMetadata(const DirectoryEntry& entry) {
  return !entry.is_directory &&
         (entry.name == kDcpMetadataFile || DcpMetadataRank(entry.name).has_value());
}

bool IsDcpData(const DirectoryEntry& entry) {
  return !entry.is_directory && entry.name.ends_with(kDcpExtension);
}

// Returns the folder of a DCP checkpoint, if these are its entries. Megatron puts a file of
// torch.save beside it, and a metadata.json.
Result<std::optional<ShardedFolder>> DcpIn(const std::string& path, std::string below,
                                           std::vector<DirectoryEntry> entries) {
  const auto metadata = std::find_if(entries.begin(), entries.end(), IsDcpMetadata);
  FirstFew others;
  for (const DirectoryEntry& entry : entries) {
    if (IsWholeOrOfRanks(entry) || IsTorchRank(entry)) others.Add(Escape(entry.name));
  }
  if (others.count() > 0) {
    return MismatchError(fmt::format(
        "{}: holds a checkpoint of PyTorch's torch.distributed.checkpoint ({}), and beside it {} "
        "of another one; move one of the two into a folder of its own",
        Escape(PathIn(path, below)), Escape(metadata->name), others.Joined()));
  }
  return std::optional(ShardedFolder{ShardedFamily::kDcp, std::move(below), std::move(entries)});
}

bool Has(const std::vector<DirectoryEntry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(), [name](const DirectoryEntry& entry) {
    return !entry.is_directory && entry.name == name;
  });
}

// Returns the folder of one MindFormers checkpoint, if these are its entries.
Result<std::optional<ShardedFolder>> MindFormersIn(const std::string& path, std::string below,
                                                   std::vector<DirectoryEntry> entries) {
  const auto file = std::find_if(entries.begin(), entries.end(), IsOfMindFormers);
  if (file == entries.end()) return std::optional<ShardedFolder>();
  const auto other = std::find_if(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return IsRankFolder(entry) || (!entry.is_directory && IsHuggingFaceIndex(entry.name));
  });
  if (other != entries.end()) {
    return MismatchError(fmt::format(
        "{}: holds files of a MindFormers 2.0 checkpoint ({}), and beside them {} of another one; "
        "move one of the two into a folder of its own",
        Escape(PathIn(path, below)), Escape(file->name), Escape(other->name)));
  }
  return std::optional(
      ShardedFolder{ShardedFamily::kMindFormers, std::move(below), std::move(entries)});
}

// Returns the checkpoint in the folder `folder` of Megatron, which is there.
Result<std::optional<ShardedFolder>> MegatronIn(const std::string& path,
                                                const std::string& folder) {
  const std::string inner = PathIn(path, folder);
  RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> inside, Storage::Of(path).List(inner));
  if (std::any_of(inside.begin(), inside.end(), IsDcpMetadata)) {
    return DcpIn(path, folder + "/", std::move(inside));
  }
  RESHARD_RETURN_IF_ERROR(CheckFamilyIsRead(inner, inside));
  return NotFoundError(fmt::format(
      "{}: is the folder that {} names, but has no {}; get it, or give the folder of another "
      "checkpoint",
      Escape(inner), kLatestIteration, kDcpMetadataFile));
}

// The error of a tracker whose folder is not there. Names the folders of other iterations.
Status NoneOfIteration(const std::string& path, const std::vector<DirectoryEntry>& entries,
                       const std::vector<std::string>& expected) {
  FirstFew others;
  for (const DirectoryEntry& entry : entries) {
    const bool is_of_iteration = entry.name.starts_with("iter_") ||
                                 entry.name.starts_with("iteration_") ||
                                 entry.name.starts_with("global_step");
    if (entry.is_directory && is_of_iteration) others.Add(Escape(entry.name));
  }
  return NotFoundError(fmt::format(
      "{}: expected the folder of the iteration that it names, {}, found {}; get it, or give the "
      "folder of another checkpoint",
      Escape(PathIn(path, kLatestIteration)), fmt::join(expected, " or "),
      others.count() == 0 ? "none" : others.Joined()));
}

// Returns the latest checkpoint of a folder that has kLatestIteration. MindFormers, Megatron and
// verl write one, and name the folders of their checkpoints each in its own way.
Result<std::optional<ShardedFolder>> LatestIn(const std::string& path,
                                              const std::vector<DirectoryEntry>& entries) {
  constexpr uint64_t kLongest = 64;
  const std::string release = "release";  // of Megatron, without a number
  const Storage& storage = Storage::Of(path);
  const auto rank = std::find_if(entries.begin(), entries.end(), IsRankFolder);
  if (rank != entries.end()) {
    return MismatchError(fmt::format(
        "{}: holds checkpoints of several iterations ({}), and beside them {}; give the folder of "
        "one checkpoint, or a pattern such as {}",
        Escape(path), kLatestIteration, Escape(rank->name), Escape(PathIn(path, "rank_{rank}"))));
  }
  const std::string tracker = PathIn(path, kLatestIteration);
  RESHARD_ASSIGN_OR_RETURN(const std::string content, storage.ReadWhole(tracker, kLongest));
  const std::optional<uint64_t> number = LatestIteration(content);
  const auto has_folder = [&](const std::string& name) {
    return std::any_of(entries.begin(), entries.end(), [&](const DirectoryEntry& entry) {
      return entry.is_directory && entry.name == name;
    });
  };
  if (!number && content.substr(0, content.find('\n')) == release) {
    if (has_folder(release)) return MegatronIn(path, release);
    return NoneOfIteration(path, entries, {release});
  }
  if (!number) {
    return CorruptError(fmt::format("{}: expected the number of an iteration, found {}",
                                    Escape(tracker), Quote(content)));
  }
  const std::string folder = fmt::format("iteration_{:08}", *number);
  const std::string megatron = fmt::format("iter_{:07}", *number);
  if (has_folder(folder)) {
    const std::string inner = PathIn(path, folder);
    RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> inside, storage.List(inner));
    RESHARD_ASSIGN_OR_RETURN(std::optional<ShardedFolder> found,
                             MindFormersIn(path, folder + "/", std::move(inside)));
    if (found) return found;
    return NotFoundError(fmt::format(
        "{}: expected files such as model-0000000-0000001.safetensors, found none", Escape(inner)));
  }
  if (has_folder(megatron)) return MegatronIn(path, megatron);
  const std::string verl = fmt::format("global_step_{}", *number);
  if (!has_folder(verl)) return NoneOfIteration(path, entries, {folder, megatron, verl});
  return MismatchError(fmt::format(
      "{}: names the folder {} of verl, which has a folder for each model; give one with files "
      "such as model_world_size_8_rank_0.pt, such as {}",
      Escape(tracker), verl, Escape(PathIn(path, verl + "/actor"))));
}

}  // namespace

bool IsWholeOrOfRanks(const DirectoryEntry& entry) {
  if (entry.is_directory) return IsRankFolder(entry);
  return !entry.name.starts_with('.') &&
         (IsHuggingFaceIndex(entry.name) || ContainerNamed(entry.name) != nullptr);
}

Result<std::optional<ShardedFolder>> FindShardedFolder(const std::string& path) {
  const Storage& storage = Storage::Of(path);
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, storage.KindOf(path));
  if (kind != PathKind::kDirectory) {
    RESHARD_RETURN_IF_ERROR(CheckFileStandsAlone(path));
    return std::optional<ShardedFolder>();
  }
  RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage.List(path));
  // Other programs have hidden files of that name, too.
  if (std::any_of(entries.begin(), entries.end(), IsDcpMetadata) &&
      (std::any_of(entries.begin(), entries.end(), IsDcpData) ||
       std::none_of(entries.begin(), entries.end(), IsWholeOrOfRanks))) {
    return DcpIn(path, "", std::move(entries));
  }
  if (std::any_of(entries.begin(), entries.end(), IsTorchRank)) {
    return TorchRanksIn(path, std::move(entries));
  }
  if (Has(entries, kLatestIteration) && std::none_of(entries.begin(), entries.end(), IsWhole)) {
    return LatestIn(path, entries);
  }
  RESHARD_RETURN_IF_ERROR(CheckFamilyIsRead(path, entries));
  const bool has_metadata = Has(entries, kMindFormersMetadataFile);
  const auto files = std::count_if(entries.begin(), entries.end(), IsOfMindFormers);
  // One file alone is as good as a file of full tensors.
  if (files > 1 || (has_metadata && files > 0)) return MindFormersIn(path, "", std::move(entries));
  const bool has_own = std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return IsShard(entry) || IsWholeOrOfRanks(entry);
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
