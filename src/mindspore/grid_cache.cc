#include "src/mindspore/grid_cache.h"

#include <array>

#include "src/base/status_macros.h"

namespace reshard {

SharedGrid WholeGrid(size_t dims) {
  static const auto kGrids = [] {
    std::array<SharedGrid, kMaxDims + 1> grids;
    for (size_t d = 0; d < grids.size(); ++d) {
      grids[d] = std::make_shared<const ShardGrid>(ShardGrid::Whole(d));
    }
    return grids;
  }();
  if (dims < kGrids.size()) return kGrids[dims];
  return std::make_shared<const ShardGrid>(ShardGrid::Whole(dims));
}

Result<SharedGrid> GridCache::Get(const ParameterLayout& layout, size_t dims,
                                  std::string_view where) {
  const std::scoped_lock lock(mutex_);
  const auto known = grids_.find({&layout, dims});
  if (known != grids_.end()) return known->second;
  RESHARD_ASSIGN_OR_RETURN(ShardGrid grid, ShardGrid::Make(layout, dims, where));
  SharedGrid shared = std::make_shared<const ShardGrid>(std::move(grid));
  grids_.emplace(std::pair(&layout, dims), shared);
  return shared;
}

}  // namespace reshard
