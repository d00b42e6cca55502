// The meaning of a ParameterLayout for a tensor, as a grid. Rules: docs/reference/layouts.md;
// source: MindSpore 2.10.0's behaviour.
#ifndef RESHARD_SRC_MINDSPORE_LAYOUT_GRID_H_
#define RESHARD_SRC_MINDSPORE_LAYOUT_GRID_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "reshard/status.h"
#include "reshard/strategy.h"
#include "src/source/shard_grid.h"

namespace reshard {

// Returns the number of dimensions that `layout` is of.
size_t DimsOf(const ParameterLayout& layout);

// Gives `layout` its meaning for a tensor of `dims` dimensions; `where` begins the messages
// ("src.ckpt: parameter \"w\"").
// Errors: kMismatch when the tensor map does not fit the dims or the device matrix, or when
// optimizer sharding cannot be placed.
Result<ShardGrid> MakeGrid(const ParameterLayout& layout, size_t dims, std::string_view where);

// Grids of the layouts of a strategy, each held once for all its parameters. Thread-safe; threads
// do not wait for each other for grids that were made before. Layouts are identified by address, as
// a LayoutTable holds equal ones once. They must outlive the cache.
class GridCache {
 public:
  // Returns the grid; arguments and errors: as MakeGrid.
  Result<SharedGrid> Get(const ParameterLayout& layout, size_t dims, std::string_view where);

 private:
  using Grids = std::map<std::pair<const ParameterLayout*, size_t>, SharedGrid>;
  using Slot = std::atomic<const Grids::value_type*>;

  Slot& SlotOf(const ParameterLayout& layout, size_t dims);

  std::mutex mutex_;  // guards grids_, whose entries are never changed or removed
  Grids grids_;
  // The most recent grids, by a hash; models have few layouts.
  std::array<Slot, 256> slots_{};
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_LAYOUT_GRID_H_
