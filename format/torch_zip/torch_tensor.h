// Tensors as data.pkl of a file of torch.save describes them (SPEC.md, "Tensors").
//
// Pure functions. Errors name no file.
#ifndef RESHARD_FORMAT_TORCH_ZIP_TORCH_TENSOR_H_
#define RESHARD_FORMAT_TORCH_ZIP_TORCH_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "format/pickle/pickle_reader.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// Of the key of a storage; PyTorch writes numbers.
inline constexpr size_t kLongestStorageKey = 64;

struct TorchTensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string_view storage;    // its bytes are the member data/STORAGE; refers to the pickle
  uint64_t storage_bytes = 0;  // of all the storage's whole elements
  uint64_t storage_item = 1;   // the bytes of one; the storage may have a rest of fewer bytes
  ByteRange place;             // of the tensor's row-major bytes in the storage
};

// Whether torch would make a tensor or a parameter of `value`.
bool IsTorchTensor(const Pickle& pickle, const PickleValue& value);

// Reads such a value.
// Errors:
//   kUnsupported: a tensor whose row-major bytes do not lie in one storage; names its kind
//   kCorrupt: arguments that torch.save does not write, or a tensor that leaves its storage
Result<TorchTensor> ReadTorchTensor(const Pickle& pickle, const PickleValue& value);

// Returns the dtype of a global such as torch.float32. Errors: kUnsupported; kCorrupt.
Result<DType> TorchDType(const PickleGlobal& global);

}  // namespace reshard

#endif  // RESHARD_FORMAT_TORCH_ZIP_TORCH_TENSOR_H_
