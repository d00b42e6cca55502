// How PyTorch's DTensors are cut: over the ranks of a mesh, one placement for each of its axes.
//
// Plain values and a pure function.
#ifndef RESHARD_FORMAT_CONTAINER_DEVICE_MESH_H_
#define RESHARD_FORMAT_CONTAINER_DEVICE_MESH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

struct DeviceMesh {
  Shape extents;               // at least one; the last axis is the fastest
  std::vector<int64_t> ranks;  // row-major: one for each place of the mesh
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
};

// Returns the box of `tensor` that `rank` holds; an empty box may begin anywhere. Each axis
// cuts as torch.chunk does: into parts of equal size, the last ones smaller or empty.
// Errors: kMismatch for a rank beyond the mesh; kUnsupported for a _StridedShard that is not the
// cut of later axes first.
Result<Box> BoxOfRank(const MeshTensor& tensor, int64_t rank);

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_DEVICE_MESH_H_
