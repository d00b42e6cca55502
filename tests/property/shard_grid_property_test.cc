// Shard grids against the definition of a layout, worked out element by element
// (docs/reference/layouts.md).
#include "src/mindspore/layout_grid.h"
#include "src/source/shard_grid.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/naive_reshard.h"
#include "tests/support/pick.h"

namespace reshard::shard_grid_property_test {
namespace {

struct Case {
  ParameterLayout layout;
  size_t dims = 1;
};

int64_t Product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// A layout whose axes split random dimensions, some of them one dimension together. Optimizer
// sharding takes all free axes from the right up to one, so that it can be placed.
Case AnyCase() {
  Case c;
  c.dims = Pick<size_t>(1, 4);
  auto& matrix = c.layout.device_matrix;
  matrix.resize(Pick<size_t>(1, 5));
  for (int64_t& size : matrix) size = Pick<int64_t>(1, 5);
  c.layout.tensor_map.assign(c.dims, {});
  std::vector<int64_t> free;
  std::vector<int64_t> order(matrix.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Pick<size_t>(0, i)]);
  std::set<int64_t> used;
  for (const int64_t axis : order) {
    if (Pick(0, 3) == 0) continue;
    c.layout.tensor_map[Pick<size_t>(0, c.dims)].push_back(axis);
    used.insert(axis);
  }
  for (auto& axes : c.layout.tensor_map) {
    if (axes.empty()) axes.push_back(-1);
  }
  for (size_t axis = 0; axis < matrix.size(); ++axis) {  // from the right
    if (!used.contains(static_cast<int64_t>(axis)) && matrix[matrix.size() - 1 - axis] > 1) {
      free.push_back(matrix[matrix.size() - 1 - axis]);
    }
  }
  const bool flat = std::all_of(c.layout.tensor_map.begin(), c.layout.tensor_map.end(),
                                [](const auto& axes) { return axes.size() == 1; });
  if (!free.empty() && free.size() > 1 && PickBool()) {
    const auto whole = Pick<size_t>(0, free.size() + 1);
    c.layout.opt_weight_shard_step = 1;
    c.layout.opt_weight_shard_size =
        Product({free.begin(), free.begin() + static_cast<std::ptrdiff_t>(whole)});
    if (whole < free.size() && free[whole] == 4 && PickBool()) {
      c.layout.opt_weight_shard_size *= 2;  // the inner half of an axis
    }
    if (PickBool() && whole == free.size()) c.layout.opt_weight_shard_size = -1;
  }
  if (flat && PickBool()) {  // the same in the flat form
    std::vector<int64_t> entries;
    for (const auto& axes : c.layout.tensor_map) entries.push_back(axes[0]);
    c.layout.tensor_map = {entries};
  }
  return c;
}

RC_GTEST_PROP(ShardGridProperty, RanksHoldTheBoxesOfTheDefinition, ()) {
  const Case c = AnyCase();
  const auto made = MakeGrid(c.layout, c.dims, "test");
  if (!made.ok()) RC_FAIL(made.status().message());
  const ShardGrid& grid = *made;
  RC_ASSERT(grid.devices() == Product(c.layout.device_matrix));

  Shape shard;
  for (size_t d = 0; d < c.dims; ++d) shard.push_back(Pick<int64_t>(1, 4));
  const auto full = grid.FullShape(shard, "test");
  RC_ASSERT(full.ok());
  RC_ASSERT(*grid.ShardShape(*full, "test") == shard);
  for (int64_t rank = 0; rank < grid.devices(); ++rank) {
    const auto [parts, cuts] = PartsByDefinition(c.layout, c.dims, rank);
    RC_ASSERT(grid.cuts() == cuts);
    RC_ASSERT(grid.PartsOf(rank) == parts);
    const std::vector<int64_t> replicas = grid.Replicas(parts);
    std::vector<int64_t> expected;
    for (int64_t other = 0; other < grid.devices(); ++other) {
      if (PartsByDefinition(c.layout, c.dims, other).part == parts) expected.push_back(other);
    }
    RC_ASSERT(replicas == expected);
    const auto preferred = Pick<int64_t>(0, grid.devices());
    RC_ASSERT(std::count(replicas.begin(), replicas.end(), grid.RankOf(parts, preferred)) == 1);
    RC_ASSERT(grid.RankOf(parts, rank) == rank);
  }
}

RC_GTEST_PROP(ShardGridProperty, OverlappingPartsAreThoseThatShareElements, ()) {
  const Case c = AnyCase();
  const auto grid = MakeGrid(c.layout, c.dims, "test");
  RC_ASSERT(grid.ok());
  Shape shard;
  for (size_t d = 0; d < c.dims; ++d) shard.push_back(Pick<int64_t>(1, 4));
  const auto full = grid->FullShape(shard, "test");
  Box box;
  for (const int64_t size : *full) {
    const auto begin = Pick<int64_t>(0, size);
    box.begin.push_back(begin);
    box.extent.push_back(Pick<int64_t>(1, size - begin + 1));
  }
  std::set<std::vector<int64_t>> expected;
  for (int64_t rank = 0; rank < grid->devices(); ++rank) {
    if (Intersect(grid->BoxOf(rank, shard), box)) expected.insert(grid->PartsOf(rank));
  }
  std::vector<std::vector<int64_t>> found;
  grid->ForEachOverlap(box, shard, [&](const std::vector<int64_t>& parts) {
    found.push_back(parts);
    return true;
  });
  RC_ASSERT(std::set<std::vector<int64_t>>(found.begin(), found.end()) == expected);
  RC_ASSERT(found.size() == expected.size());
  size_t calls = 0;
  grid->ForEachOverlap(box, shard, [&](const std::vector<int64_t>&) { return ++calls < 2; });
  RC_ASSERT(calls == std::min<size_t>(found.size(), 2));
}

}  // namespace
}  // namespace reshard::shard_grid_property_test
