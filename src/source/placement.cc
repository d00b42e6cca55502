#include "src/source/placement.h"

namespace reshard {

SourceTensor StandaloneTensor(const StoredArray& parameter, int64_t stage, FileId file) {
  SourceTensor tensor;
  tensor.name = parameter.name;
  tensor.kind = parameter.kind;
  tensor.dtype = parameter.dtype;
  tensor.full_shape = parameter.shape;
  tensor.shard_shape = parameter.shape;
  tensor.stage = stage;
  tensor.file = file;
  tensor.grid = WholeGrid(parameter.shape.size());
  return tensor;
}

}  // namespace reshard
