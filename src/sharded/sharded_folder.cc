#include "src/sharded/sharded_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
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

bool IsOfMindFormers(const DirectoryEntry& entry) {
  return !entry.is_directory && ParseMindFormersName(entry.name).has_value();
}

bool IsTorchRank(const DirectoryEntry& entry) {
  return !entry.is_directory && ParseTorchRankName(entry.name).has_value();
}

bool IsDcpMetadata(const DirectoryEntry& entry) {
  return !entry.is_directory &&
         (entry.name == kDcpMetadataFile || DcpMetadataRank(entry.name).has_value());
}

bool IsDcpData(const DirectoryEntry& entry) {
  return !entry.is_directory && entry.name.ends_with(kDcpExtension);
}

using IsEntry = bool (*)(const DirectoryEntry& entry);

// The files that tell a family.
struct FamilyFiles {
  SourceFormat family;
  std::string_view word;  // of `source.format`
  std::string_view in_words;
  IsEntry is_one;
};

constexpr FamilyFiles kFamilyFiles[] = {
    {SourceFormat::kHuggingFaceShards, "huggingface-shards",
     "shards of PyTorch's HuggingFaceStorageWriter", IsShard},
    {SourceFormat::kMindFormers, "mindformers", "files of a MindFormers 2.0 checkpoint",
     IsOfMindFormers},
    {SourceFormat::kDcp, "dcp", "files of PyTorch's torch.distributed.checkpoint", IsDcpMetadata},
    {SourceFormat::kFsdp, "fsdp", "files that ranks saved with torch.save", IsTorchRank},
    {SourceFormat::kPlain, "plain", "rank folders or full tensors",
     [](const DirectoryEntry& /*entry*/) { return true; }},
};

const FamilyFiles& FilesOf(const DirectoryEntry& entry) {
  return *std::find_if(std::begin(kFamilyFiles), std::end(kFamilyFiles),
                       [&](const FamilyFiles& row) { return row.is_one(entry); });
}

std::string_view FilesInWords(SourceFormat family) {
  return std::find_if(std::begin(kFamilyFiles), std::end(kFamilyFiles),
                      [&](const FamilyFiles& row) { return row.family == family; })
      ->in_words;
}

// Returns an error if the folder `path` has other files beside its own.
Status CheckNoOther(const std::string& path, const std::vector<DirectoryEntry>& entries,
                    IsEntry is_own, IsEntry is_other) {
  const auto first = std::find_if(entries.begin(), entries.end(), is_other);
  if (first == entries.end()) return {};
  FirstFew others;
  for (const DirectoryEntry& entry : entries) {
    if (is_other(entry)) others.Add(Escape(entry.name));
  }
  const DirectoryEntry& own = *std::find_if(entries.begin(), entries.end(), is_own);
  return MismatchError(
      fmt::format("{}: holds {} ({}), and beside them {} of another checkpoint; choose one by "
                  "`source.format` ({} or {}), or move one of the two into a folder of its own",
                  Escape(path), FilesOf(own).in_words, Escape(own.name), others.Joined(),
                  FilesOf(own).word, FilesOf(*first).word));
}

// Returns the folder of shards, which these entries have.
Result<std::optional<ShardedFolder>> ShardsIn(const std::string& path, std::string below,
                                              std::vector<DirectoryEntry> entries, bool chosen) {
  if (!chosen) {
    RESHARD_RETURN_IF_ERROR(CheckNoOther(
        PathIn(path, below), entries, IsShard,
        [](const DirectoryEntry& entry) { return !IsShard(entry) && IsWholeOrOfRanks(entry); }));
  }
  return std::optional(
      ShardedFolder{SourceFormat::kHuggingFaceShards, std::move(below), std::move(entries)});
}

// Whether an entry is of a folder of full tensors, or a shard.
bool IsWhole(const DirectoryEntry& entry) {
  return !entry.is_directory && IsWholeOrOfRanks(entry) && !IsOfMindFormers(entry);
}

// Returns the folder of files of torch.save, which these entries have.
Result<std::optional<ShardedFolder>> TorchRanksIn(const std::string& path,
                                                  std::vector<DirectoryEntry> entries,
                                                  bool chosen) {
  if (!chosen) {
    RESHARD_RETURN_IF_ERROR(CheckNoOther(path, entries, IsTorchRank, IsWholeOrOfRanks));
  }
  return std::optional(ShardedFolder{SourceFormat::kFsdp, "", std::move(entries)});
}

// Returns the folder of a DCP checkpoint, which these entries have. Megatron puts a file of
// torch.save beside it, and a metadata.json.
Result<std::optional<ShardedFolder>> DcpIn(const std::string& path, std::string below,
                                           std::vector<DirectoryEntry> entries, bool chosen) {
  if (!chosen) {
    RESHARD_RETURN_IF_ERROR(CheckNoOther(
        PathIn(path, below), entries, IsDcpMetadata,
        [](const DirectoryEntry& entry) { return IsTorchRank(entry) || IsWholeOrOfRanks(entry); }));
  }
  return std::optional(ShardedFolder{SourceFormat::kDcp, std::move(below), std::move(entries)});
}

bool HasFile(const std::vector<DirectoryEntry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(), [name](const DirectoryEntry& entry) {
    return !entry.is_directory && entry.name == name;
  });
}

// Returns the folder of a MindFormers checkpoint, if it has these entries.
Result<std::optional<ShardedFolder>> MindFormersIn(const std::string& path, std::string below,
                                                   std::vector<DirectoryEntry> entries,
                                                   bool chosen) {
  if (std::none_of(entries.begin(), entries.end(), IsOfMindFormers)) {
    return std::optional<ShardedFolder>();
  }
  if (!chosen) {
    RESHARD_RETURN_IF_ERROR(CheckNoOther(
        PathIn(path, below), entries, IsOfMindFormers, [](const DirectoryEntry& entry) {
          return IsRankFolder(entry) || (!entry.is_directory && IsHuggingFaceIndex(entry.name));
        }));
  }
  return std::optional(
      ShardedFolder{SourceFormat::kMindFormers, std::move(below), std::move(entries)});
}

// Returns the checkpoint in the folder `folder` of Megatron, which is there.
Result<std::optional<ShardedFolder>> MegatronIn(const std::string& path, const std::string& folder,
                                                bool chosen) {
  const std::string inner = PathIn(path, folder);
  RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> inside, Storage::Of(path).List(inner));
  if (std::any_of(inside.begin(), inside.end(), IsDcpMetadata)) {
    return DcpIn(path, folder + "/", std::move(inside), chosen);
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
                                              const std::vector<DirectoryEntry>& entries,
                                              bool chosen) {
  constexpr uint64_t kLongest = 64;
  const std::string release = "release";  // of Megatron, without a number
  const Storage& storage = Storage::Of(path);
  const auto rank = std::find_if(entries.begin(), entries.end(), IsRankFolder);
  if (rank != entries.end() && !chosen) {
    return MismatchError(fmt::format(
        "{}: holds checkpoints of several iterations ({}), and beside them {}; give the folder of "
        "one checkpoint, or `source.format=plain` for the folders of ranks",
        Escape(path), kLatestIteration, Escape(rank->name)));
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
    if (has_folder(release)) return MegatronIn(path, release, chosen);
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
                             MindFormersIn(path, folder + "/", std::move(inside), chosen));
    if (found) return found;
    return NotFoundError(fmt::format(
        "{}: expected files such as model-0000000-0000001.safetensors, found none", Escape(inner)));
  }
  if (has_folder(megatron)) return MegatronIn(path, megatron, chosen);
  const std::string verl = fmt::format("global_step_{}", *number);
  if (!has_folder(verl)) return NoneOfIteration(path, entries, {folder, megatron, verl});
  return MismatchError(fmt::format(
      "{}: names the folder {} of verl, which has a folder for each model; give one with files "
      "such as model_world_size_8_rank_0.pt, such as {}",
      Escape(tracker), verl, Escape(PathIn(path, verl + "/actor"))));
}

bool IsFolderOfShards(const DirectoryEntry& entry) {
  return entry.is_directory && entry.name == kShardsBelow;
}

// Returns the folder of a family, if the folder `path` with these entries is or has one.
Result<std::optional<ShardedFolder>> FamilyIn(const std::string& path,
                                              std::vector<DirectoryEntry> entries,
                                              std::optional<SourceFormat> format) {
  const bool chosen = format.has_value();
  const auto may_be = [&](SourceFormat family) { return format.value_or(family) == family; };
  const auto has = [&](IsEntry is) { return std::any_of(entries.begin(), entries.end(), is); };
  // Other programs have hidden files of that name, too.
  if (may_be(SourceFormat::kDcp) && has(IsDcpMetadata) &&
      (chosen || has(IsDcpData) || !has(IsWholeOrOfRanks))) {
    return DcpIn(path, "", std::move(entries), chosen);
  }
  if (may_be(SourceFormat::kFsdp) && has(IsTorchRank)) {
    return TorchRanksIn(path, std::move(entries), chosen);
  }
  const bool may_be_latest =
      chosen ? may_be(SourceFormat::kMindFormers) || may_be(SourceFormat::kDcp) : !has(IsWhole);
  if (may_be_latest && HasFile(entries, kLatestIteration)) return LatestIn(path, entries, chosen);
  if (!chosen) RESHARD_RETURN_IF_ERROR(CheckFamilyIsRead(path, entries));
  // One file alone is as good as a file of full tensors.
  const auto files = std::count_if(entries.begin(), entries.end(), IsOfMindFormers);
  const bool is_set = chosen || files > 1 || HasFile(entries, kMindFormersMetadataFile);
  if (may_be(SourceFormat::kMindFormers) && files > 0 && is_set) {
    return MindFormersIn(path, "", std::move(entries), chosen);
  }
  if (!may_be(SourceFormat::kHuggingFaceShards)) return std::optional<ShardedFolder>();
  if (has(IsShard)) return ShardsIn(path, "", std::move(entries), chosen);
  if (!has(IsFolderOfShards) || (!chosen && has(IsWholeOrOfRanks))) {
    return std::optional<ShardedFolder>();
  }
  std::string below(kShardsBelow);
  RESHARD_ASSIGN_OR_RETURN(entries, Storage::Of(path).List(PathIn(path, below)));
  if (!has(IsShard)) return std::optional<ShardedFolder>();
  return ShardsIn(path, below + "/", std::move(entries), chosen);
}

}  // namespace

bool IsWholeOrOfRanks(const DirectoryEntry& entry) {
  if (entry.is_directory) return IsRankFolder(entry);
  return !entry.name.starts_with('.') &&
         (IsHuggingFaceIndex(entry.name) || ContainerNamed(entry.name) != nullptr);
}

Result<std::optional<ShardedFolder>> FindShardedFolder(const std::string& path,
                                                       std::optional<SourceFormat> format) {
  const Storage& storage = Storage::Of(path);
  RESHARD_ASSIGN_OR_RETURN(const PathKind kind, storage.KindOf(path));
  const bool is_folder = kind == PathKind::kDirectory;
  if (!is_folder) RESHARD_RETURN_IF_ERROR(CheckFileStandsAlone(path));
  std::optional<ShardedFolder> found;
  const bool is_there = kind != PathKind::kMissing;
  if (format == SourceFormat::kPlain || (!is_folder && !format) || !is_there) return found;
  if (is_folder) {
    RESHARD_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage.List(path));
    RESHARD_ASSIGN_OR_RETURN(found, FamilyIn(path, std::move(entries), format));
  }
  if (!format || (found && found->family == *format)) return found;
  return NotFoundError(fmt::format("{}: `source.format` says {}, found {}; give another one",
                                   Escape(path), FilesInWords(*format),
                                   found       ? FilesInWords(found->family)
                                   : is_folder ? "none"
                                               : "a file"));
}

}  // namespace reshard
