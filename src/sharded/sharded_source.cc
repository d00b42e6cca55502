#include "src/sharded/sharded_source.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/sharded/dcp_files.h"
#include "src/sharded/mindformers_files.h"
#include "src/sharded/shard_files.h"
#include "src/sharded/sharded_folder.h"
#include "src/sharded/torch_rank_files.h"

namespace reshard {
namespace {

using FamilyReader = Result<FoundSource> (*)(const ShardedFolder&, const SourceRequest&);

FamilyReader ReaderOf(SourceFormat family) {
  switch (family) {
    case SourceFormat::kMindFormers:
      return ReadMindFormers;
    case SourceFormat::kFsdp:
      return ReadTorchRanks;
    case SourceFormat::kDcp:
      return ReadDcp;
    default:
      return ReadShards;
  }
}

}  // namespace

Result<std::optional<FoundSource>> FindShardedSource(const SourceRequest& request) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<ShardedFolder> folder,
                           FindShardedFolder(request.path, request.format));
  if (!folder) return std::optional<FoundSource>();
  RESHARD_ASSIGN_OR_RETURN(FoundSource found, ReaderOf(folder->family)(*folder, request));
  return std::optional(std::move(found));
}

}  // namespace reshard
