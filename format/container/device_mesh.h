// How PyTorch's DTensors are cut: over the ranks of a mesh, one placement for each of its axes.
//
// Immutable values and a pure function.
#ifndef RESHARD_FORMAT_CONTAINER_DEVICE_MESH_H_
#define RESHARD_FORMAT_CONTAINER_DEVICE_MESH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// Ranks by their place. Immutable.
class MeshRanks {
 public:
  MeshRanks() = default;
  explicit MeshRanks(std::vector<int64_t> ranks);

  const std::vector<int64_t>& all() const { return ranks_; }
  size_t size() const { return ranks_.size(); }
  // Returns the first place of a rank, if it has one.
  std::optional<size_t> PlaceOf(int64_t rank) const;

  size_t memory() const {
    return ranks_.capacity() * sizeof(int64_t) + by_rank_.capacity() * sizeof(uint32_t);
  }

 private:
  std::vector<int64_t> ranks_;
  std::vector<uint32_t> by_rank_;  // places, by rank; none if the ranks ascend
};

struct DeviceMesh {
  Shape extents;    // at least one; the last axis is the fastest
  MeshRanks ranks;  // row-major: one for each place of the mesh
};

// The placement along an axis of the mesh.
struct MeshPlacement {
  std::optional<int64_t> dim;  // that is cut; none: each rank along the axis has the same
  // Of _StridedShard: along how many ranks later axes have cut `dim` before this one.
  int64_t split = 1;
};

// An array that is a rank's part of a tensor.
struct MeshTensor {
  std::string name;  // of the array
  Shape full_shape;
  std::shared_ptr<const DeviceMesh> mesh;
  std::vector<MeshPlacement> placements;  // one for each axis

  // Whether some rank holds less than the full tensor.
  bool is_cut() const;
  // About the bytes that it takes, without the mesh.
  size_t memory() const {
    return sizeof(MeshTensor) + name.capacity() + full_shape.capacity() * sizeof(int64_t) +
           placements.capacity() * sizeof(MeshPlacement);
  }
};

// Returns the box of `tensor` that `rank` holds; an empty box may begin anywhere. Each axis
// cuts as torch.chunk does: into parts of equal size, the last ones smaller or empty.
// Errors: kMismatch for a rank beyond the mesh; kUnsupported for a _StridedShard that is not the
// cut of later axes first.
Result<Box> BoxOfRank(const MeshTensor& tensor, int64_t rank);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_DEVICE_MESH_H_
