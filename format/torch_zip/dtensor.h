// DTensors as data.pkl of a file of torch.save has them (SPEC.md, "DTensors").
//
// Errors name no file.
#ifndef RESHARD_FORMAT_TORCH_ZIP_DTENSOR_H_
#define RESHARD_FORMAT_TORCH_ZIP_DTENSOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

#include "format/container/device_mesh.h"
#include "format/pickle/pickle_reader.h"
#include "format/torch_zip/torch_archive.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Reads the placements of DTensors, and the ranks of their meshes, each mesh once. Pickle and
// archive outlive it. Not thread-safe.
class DTensorReader {
 public:
  DTensorReader(const Pickle& pickle, TorchArchive& archive, const MemoryCheck& memory)
      : pickle_(pickle), archive_(archive), memory_(memory) {}

  // Returns the local tensor of `value` if that is a DTensor, a value that IsTorchTensor; else
  // null.
  const PickleValue* LocalTensorOf(const PickleValue& value);

  // `value` has a local tensor. Errors: kCorrupt; kUnsupported for
  // placements such as partial sums, and meshes of an unknown form; as ZipDirectory::ReadChecked.
  Result<MeshTensor> Read(const std::string& name, const PickleValue& value);

 private:
  // The ranks that a tensor holds.
  struct TensorOfRanks {
    Shape shape;
    std::shared_ptr<const MeshRanks> ranks;
  };
  // A list of ranks, and what its place in a mesh follows from.
  using MeshKey = std::tuple<const MeshRanks*, Shape, Shape, Shape, int64_t>;

  Result<std::shared_ptr<const DeviceMesh>> MeshOf(const PickleValue& mesh);
  Result<std::shared_ptr<const DeviceMesh>> ReadMesh(const PickleValue& mesh);
  Result<TensorOfRanks> ReadRanks(const PickleValue& tensor);
  // Counts places of meshes that are made. Errors: kResourceExhausted.
  Status CountPlaces(uint64_t places);
  Result<MeshPlacement> PlacementOf(const PickleValue& value);
  // Errors: kUnsupported if axes of the mesh cut in another order than from the first to the last.
  Status CheckOrder(const PickleValue& spec, const MeshTensor& tensor);

  const Pickle& pickle_;
  TorchArchive& archive_;
  const MemoryCheck& memory_;
  std::unordered_map<uint64_t, std::shared_ptr<const DeviceMesh>>
      meshes_;  // by the place of the object
  std::map<MeshKey, std::shared_ptr<const DeviceMesh>> distinct_;
  std::map<const ZipMember*, std::string> members_;  // that were read
  // By the member, and the place in it.
  std::map<std::tuple<const ZipMember*, uint64_t, uint64_t>, std::shared_ptr<const MeshRanks>>
      lists_;
  uint64_t places_left_ = kLeastPlaces;

  // Of all meshes; each rank that is read allows some more.
  static constexpr uint64_t kLeastPlaces = uint64_t{1} << 18;
  static constexpr uint64_t kPlacesPerRank = 16;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_DTENSOR_H_
