// TensorInfo: what a parameter of a checkpoint is, however it is cut. A plain value.
//
// Implemented in src/tensor (header only).
#ifndef RESHARD_TENSOR_INFO_H_
#define RESHARD_TENSOR_INFO_H_

#include <cstdint>
#include <string>

#include "reshard/box.h"
#include "reshard/dtype.h"

namespace reshard {

enum class ArrayKind {
  kTensor,
  kText,       // a `str` entry: dtype kString, dims [0], content UTF-32LE
  kMapTensor,  // keys, values, status
};

struct TensorInfo {
  std::string name;
  ArrayKind kind = ArrayKind::kTensor;
  DType dtype = DType::kFloat32;  // without meaning for a MapTensor
  Shape shape;                    // of the full tensor; empty for text entries and MapTensors
  uint64_t bytes = 0;             // of the full tensor; of a text or MapTensor those in its file
};

}  // namespace reshard

#endif  // RESHARD_TENSOR_INFO_H_
