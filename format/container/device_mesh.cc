#include "format/container/device_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "src/base/status_macros.h"

namespace reshard {
namespace {

// Cuts a dimension of `box` into `parts`, and leaves the one with this number.
void Chunk(Box& box, size_t dim, int64_t parts, int64_t number) {
  const int64_t extent = box.extent[dim];
  const int64_t chunk = extent / parts + (extent % parts != 0 ? 1 : 0);
  // No overflow: the product is at most the extent unless the part is empty.
  const int64_t begin = chunk == 0 || number >= extent / chunk + 1 ? extent : number * chunk;
  box.begin[dim] += std::min(begin, extent);
  box.extent[dim] = std::min(chunk, extent - std::min(begin, extent));
}

// Returns along how many ranks the axes behind `axis` cut `dim`.
int64_t LaterParts(const MeshTensor& tensor, size_t axis, int64_t dim) {
  int64_t parts = 1;
  for (size_t i = axis + 1; i < tensor.placements.size(); ++i) {
    if (tensor.placements[i].dim == dim) parts *= tensor.mesh->extents[i];
  }
  return parts;
}

}  // namespace

MeshRanks::MeshRanks(std::vector<int64_t> ranks) : ranks_(std::move(ranks)) {
  if (std::is_sorted(ranks_.begin(), ranks_.end())) return;
  by_rank_.resize(ranks_.size());
  std::iota(by_rank_.begin(), by_rank_.end(), 0U);
  std::sort(by_rank_.begin(), by_rank_.end(), [this](uint32_t a, uint32_t b) {
    return std::pair(ranks_[a], a) < std::pair(ranks_[b], b);
  });
}

std::optional<size_t> MeshRanks::PlaceOf(int64_t rank) const {
  if (by_rank_.empty()) {
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    if (found == ranks_.end() || *found != rank) return std::nullopt;
    return static_cast<size_t>(found - ranks_.begin());
  }
  const auto found =
      std::lower_bound(by_rank_.begin(), by_rank_.end(), rank,
                       [this](uint32_t place, int64_t wanted) { return ranks_[place] < wanted; });
  if (found == by_rank_.end() || ranks_[*found] != rank) return std::nullopt;
  return *found;
}

bool MeshTensor::is_cut() const {
  for (size_t i = 0; i < placements.size(); ++i) {
    if (placements[i].dim && mesh->extents[i] > 1) return true;
  }
  return false;
}

Result<Box> BoxOfRank(const MeshTensor& tensor, int64_t rank) {
  const DeviceMesh& mesh = *tensor.mesh;
  const std::optional<size_t> place = mesh.ranks.PlaceOf(rank);
  if (!place) {
    return MismatchError(
        fmt::format("its mesh {} of {} ranks does not have rank {}; do the files come from one "
                    "save?",
                    ToString(mesh.extents), mesh.ranks.size(), rank));
  }
  Shape index(mesh.extents.size(), 0);
  auto rest = static_cast<int64_t>(*place);
  for (size_t i = index.size(); i-- > 0;) {
    index[i] = rest % mesh.extents[i];
    rest /= mesh.extents[i];
  }
  Box box = Box::Whole(tensor.full_shape);
  // The later axes cut before a strided one.
  std::vector<size_t> strided;
  for (size_t i = 0; i < tensor.placements.size(); ++i) {
    const MeshPlacement& placement = tensor.placements[i];
    if (!placement.dim) continue;
    if (placement.split == 1) {
      Chunk(box, static_cast<size_t>(*placement.dim), mesh.extents[i], index[i]);
      continue;
    }
    if (placement.split != LaterParts(tensor, i, *placement.dim)) {
      return UnsupportedError(fmt::format(
          "dimension {} is cut by _StridedShard with split_factor {} over a mesh {}, expected {}",
          *placement.dim, placement.split, ToString(mesh.extents),
          LaterParts(tensor, i, *placement.dim)));
    }
    strided.push_back(i);
  }
  for (size_t i = strided.size(); i-- > 0;) {
    const size_t axis = strided[i];
    Chunk(box, static_cast<size_t>(*tensor.placements[axis].dim), mesh.extents[axis], index[axis]);
  }
  return box;
}

}  // namespace reshard
