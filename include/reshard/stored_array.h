// StoredArray: one entry of a checkpoint file: its name, type and shape, and where its bytes are.
//
// Offsets and lengths are bytes of the file. Plain values; no locking.
//
// Implemented in src/tensor (header only); filled in by src/source.
#ifndef RESHARD_STORED_ARRAY_H_
#define RESHARD_STORED_ARRAY_H_

#include <string>
#include <vector>

#include "reshard/box.h"
#include "reshard/byte_range.h"
#include "reshard/dtype.h"
#include "reshard/tensor_info.h"

namespace reshard {

// One of the three tensors (keys, values, status) of one Value of a MapTensor.
struct MapTensorPart {
  std::string type;  // as written: a lower-case numpy name such as "int32"
  Shape shape;
  ByteRange content;

  friend bool operator==(const MapTensorPart&, const MapTensorPart&) = default;
};

struct StoredArray {
  std::string name;
  ArrayKind kind = ArrayKind::kTensor;
  DType dtype = DType::kFloat32;  // without meaning for a MapTensor
  Shape shape;         // as the file means it: a scalar's is empty; without meaning for a MapTensor
  uint64_t bytes = 0;  // content bytes in all
  std::vector<ByteRange> framed;  // the whole messages, key and length included, one for each Value
  std::vector<ByteRange>
      content;  // the content of each Value, in file order; empty for a MapTensor
  std::vector<MapTensorPart> map_tensor;  // the parts of its Values one after the other

  friend bool operator==(const StoredArray&, const StoredArray&) = default;
};

}  // namespace reshard

#endif  // RESHARD_STORED_ARRAY_H_
