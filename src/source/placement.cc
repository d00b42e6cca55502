#include "src/source/placement.h"

#include "src/tensor/byte_box.h"

namespace reshard {

uint64_t SourceTensor::Bytes() const {
  if (!rank) return TensorBytes(full_shape, dtype).value_or(0);
  uint64_t bytes = 0;
  for (const ByteRange& range : content) bytes += range.length;
  return bytes;
}

TensorInfo SourceTensor::Info() const {
  return {name, kind, dtype, kind == ArrayKind::kTensor ? full_shape : Shape(), Bytes()};
}

SourceTensor StandaloneTensor(const StoredArray& parameter, int64_t stage, int64_t rank,
                              FileId file) {
  SourceTensor tensor;
  tensor.name = parameter.name;
  tensor.kind = parameter.kind;
  tensor.dtype = parameter.dtype;
  tensor.full_shape = parameter.shape;
  tensor.shard_shape = parameter.shape;
  tensor.stage = stage;
  tensor.file = file;
  tensor.content = parameter.kind == ArrayKind::kMapTensor ? parameter.framed : parameter.content;
  tensor.grid = WholeGrid(parameter.shape.size());
  tensor.rank = rank;
  return tensor;
}

}  // namespace reshard
