#include "src/sharded/lone_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/base/quote.h"
#include "src/base/status_macros.h"
#include "src/sharded/torch_rank_files.h"

namespace reshard {
namespace {

// Returns the first wanted array that is a rank's part of a DTensor, or null. Errors: as `wants`.
Result<const MeshTensor*> FindDTensorPart(const IndexedFile& file, const WantsArray& wants) {
  for (const MeshTensor& part : file.shards().mesh) {
    RESHARD_ASSIGN_OR_RETURN(const bool is_wanted, wants ? wants(part.name) : Result<bool>(true));
    if (is_wanted) return &part;
  }
  return static_cast<const MeshTensor*>(nullptr);
}

}  // namespace

std::string AdviceForRanks(const std::string& path, const MeshTensor& part) {
  if (ParseTorchRankName(path.substr(path.rfind('/') + 1))) {
    return "give the folder with the files of all ranks";
  }
  const std::vector<int64_t>& ranks = part.mesh->ranks.all();  // as the file has them
  const int64_t last = std::max<int64_t>(*std::max_element(ranks.begin(), ranks.end()), 0);
  return fmt::format(
      "give the folder with the files of all ranks, each with its rank and the number of ranks in "
      "its name: model_world_size_{0}_rank_0.pt to model_world_size_{0}_rank_{1}.pt for {0} ranks",
      static_cast<uint64_t>(last) + 1, last);
}

Status CheckHoldsNoPart(const std::string& path, const IndexedFile& file, const WantsArray& wants,
                        LoneParts use) {
  if (use == LoneParts::kTaken || use == LoneParts::kListed) return {};
  RESHARD_ASSIGN_OR_RETURN(const MeshTensor* const part, FindDTensorPart(file, wants));
  if (part == nullptr) return {};
  return MismatchError(fmt::format(
      "{}: {} is a part of a DTensor {} over a mesh {} of ranks; {}{}", Escape(path),
      Quote(part->name), ToString(part->full_shape), ToString(part->mesh->extents),
      AdviceForRanks(path, *part),
      use == LoneParts::kRefusedUnlessPartial ? ", or pass `partial` to take it as it is" : ""));
}

}  // namespace reshard
