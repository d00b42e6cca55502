// GridCache: grids of the layouts of a strategy, each held once for all parameters that have it.
//
// Thread-safe. Layouts are told apart by where they lie, as a LayoutTable holds equal ones once;
// they must outlive it.
#ifndef RESHARD_SRC_MINDSPORE_GRID_CACHE_H_
#define RESHARD_SRC_MINDSPORE_GRID_CACHE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "reshard/status.h"
#include "src/source/shard_grid.h"

namespace reshard {

using SharedGrid = std::shared_ptr<const ShardGrid>;

// Returns the grid of one rank that holds the whole tensor.
SharedGrid WholeGrid(size_t dims);

class GridCache {
 public:
  // Returns the grid; arguments and errors: as ShardGrid::Make.
  Result<SharedGrid> Get(const ParameterLayout& layout, size_t dims, std::string_view where);

 private:
  std::mutex mutex_;  // guards what follows
  std::map<std::pair<const ParameterLayout*, size_t>, SharedGrid> grids_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_GRID_CACHE_H_
