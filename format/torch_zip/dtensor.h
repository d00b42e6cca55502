// DTensors as data.pkl of a file of torch.save has them (SPEC.md, "DTensors").
//
// Errors name no file.
#ifndef RESHARD_FORMAT_TORCH_ZIP_DTENSOR_H_
#define RESHARD_FORMAT_TORCH_ZIP_DTENSOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "format/container/device_mesh.h"
#include "format/pickle/pickle_reader.h"
#include "format/torch_zip/torch_archive.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Returns the local tensor of `value` if that is a DTensor, a value that IsTorchTensor; else null.
const PickleValue* LocalTensorOf(const Pickle& pickle, const PickleValue& value);

// Reads the placements of DTensors, and the ranks of their meshes, each mesh once. Pickle and
// archive outlive it. Not thread-safe.
class DTensorReader {
 public:
  DTensorReader(const Pickle& pickle, TorchArchive& archive, const MemoryCheck& memory)
      : pickle_(pickle), archive_(archive), memory_(memory) {}

  // `value` has a local tensor. Errors: kCorrupt; kUnsupported for
  // placements such as partial sums, and meshes of an unknown form; as ZipDirectory::ReadChecked.
  Result<MeshTensor> Read(const std::string& name, const PickleValue& value);

 private:
  Result<std::shared_ptr<const DeviceMesh>> MeshOf(const PickleValue& mesh);
  Result<std::vector<int64_t>> ReadRanks(const PickleValue& tensor, Shape& shape);
  Result<MeshPlacement> PlacementOf(const PickleValue& value) const;

  const Pickle& pickle_;
  TorchArchive& archive_;
  const MemoryCheck& memory_;
  std::map<uint64_t, std::shared_ptr<const DeviceMesh>> meshes_;  // by the place of the object
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_DTENSOR_H_
