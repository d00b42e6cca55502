#include "src/sharded/sharded_source.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/dcp/dcp_items.h"
#include "format/safetensors/safetensors_container.h"
#include "format/torch_zip/torch_zip_container.h"
#include "src/base/status_macros.h"
#include "src/sharded/dcp_files.h"
#include "src/sharded/mindformers_files.h"
#include "src/sharded/shard_files.h"
#include "src/sharded/sharded_folder.h"
#include "src/sharded/torch_rank_files.h"

namespace reshard {
namespace {

struct Family {
  SourceFormat format;
  const Container& container;  // of its files
  bool files_are_numbered;     // as FoundSource has it
  // Adds the files, their placement and other facts.
  Status (*read)(const ShardedFolder& folder, const SourceRequest& request, FoundSource& found);
};

constexpr Family kShardedFamilies[] = {
    {SourceFormat::kHuggingFaceShards, kSafetensorsContainer, true, ReadShards},
    {SourceFormat::kMindFormers, kSafetensorsContainer, true, ReadMindFormers},
    {SourceFormat::kDcp, kDcpContainer, true, ReadDcp},
    {SourceFormat::kFsdp, kTorchZipContainer, false, ReadTorchRanks},
};

}  // namespace

Result<std::optional<FoundSource>> FindShardedSource(const SourceRequest& request) {
  RESHARD_ASSIGN_OR_RETURN(const std::optional<ShardedFolder> folder,
                           FindShardedFolder(request.path, request.format));
  if (!folder) return std::optional<FoundSource>();
  const auto* const family =
      std::find_if(std::begin(kShardedFamilies), std::end(kShardedFamilies),
                   [&](const Family& row) { return row.format == folder->family; });
  FoundSource found;
  found.container = &family->container;
  found.files_are_numbered = family->files_are_numbered;
  RESHARD_RETURN_IF_ERROR(family->read(*folder, request, found));
  return std::optional(std::move(found));
}

}  // namespace reshard
