// ParameterInfo: what the index knows of one parameter of a checkpoint file.
//
// Offsets and lengths are bytes of the file. Plain values; no locking.
//
// Implemented in src/tensor (header only); filled in by src/source.
#ifndef RESHARD_PARAMETER_H_
#define RESHARD_PARAMETER_H_

#include <string>
#include <vector>

#include "reshard/box.h"
#include "reshard/byte_range.h"
#include "reshard/dtype.h"

namespace reshard {

enum class ParameterKind {
  kTensor,
  kString,  // a note: dtype kString, dims [0], content UTF-32LE
  kMap,     // a MapTensor: keys, values, status
};

// One of the three tensors (keys, values, status) of one Value of a MapTensor.
struct MapTensorPart {
  std::string type;  // as written: a lower-case numpy name such as "int32"
  Shape shape;
  ByteRange content;

  friend bool operator==(const MapTensorPart&, const MapTensorPart&) = default;
};

struct ParameterInfo {
  std::string name;
  ParameterKind kind = ParameterKind::kTensor;
  DType dtype = DType::kFloat32;  // without meaning for kMap
  Shape shape;         // as the file means it: a scalar's is empty; without meaning for kMap
  uint64_t bytes = 0;  // content bytes in all
  std::vector<ByteRange> values;  // the whole messages, key and length included, one for each Value
  std::vector<ByteRange> content;  // the content of each Value, in file order; empty for kMap
  std::vector<MapTensorPart> map;  // kMap: the parts of the Values one after the other

  friend bool operator==(const ParameterInfo&, const ParameterInfo&) = default;
};

}  // namespace reshard

#endif  // RESHARD_PARAMETER_H_
