#include "tests/support/naive_reshard.h"

#include <stdexcept>

namespace reshard {

NaiveParts PartsByDefinition(const ParameterLayout& layout, size_t dims, int64_t rank) {
  const auto& matrix = layout.device_matrix;
  std::vector<int64_t> coordinates(matrix.size());
  int64_t rest = rank;
  for (size_t i = matrix.size(); i-- > 0; rest /= matrix[i]) coordinates[i] = rest % matrix[i];

  std::vector<std::vector<int64_t>> map = layout.tensor_map;
  if (map.size() == 1 && map[0].size() == dims) {  // flat: one entry for each dimension
    map.clear();
    for (const int64_t entry : layout.tensor_map[0]) map.push_back({entry});
  }
  if (map.size() != dims) throw std::invalid_argument("the tensor map does not fit the tensor");
  NaiveParts parts = {std::vector<int64_t>(dims, 0), std::vector<int64_t>(dims, 1)};
  std::vector<bool> used(matrix.size(), false);
  for (size_t d = 0; d < dims; ++d) {
    for (const int64_t entry : map[d]) {
      if (entry == -1) continue;
      const size_t axis = matrix.size() - 1 - static_cast<size_t>(entry);
      parts.part[d] = parts.part[d] * matrix[axis] + coordinates[axis];
      parts.cuts[d] *= matrix[axis];
      used[axis] = true;
    }
  }

  if (layout.opt_weight_shard_step == 0 || layout.opt_weight_shard_size == 0) return parts;
  if (dims == 0) throw std::invalid_argument("a scalar has no first dimension");
  int64_t replicas = 1;
  int64_t devices = 1;
  for (size_t i = 0; i < matrix.size(); ++i) {
    replicas *= used[i] ? 1 : matrix[i];
    devices *= matrix[i];
  }
  const int64_t size = layout.opt_weight_shard_size == -1 ? replicas : layout.opt_weight_shard_size;
  int64_t left = size;
  int64_t index = 0;
  int64_t weight = 1;  // of the next axis in `index`
  for (size_t i = matrix.size(); i-- > 0 && left > 1;) {
    if (used[i] || matrix[i] == 1) continue;
    const bool whole = left % matrix[i] == 0;
    if (!whole && matrix[i] % left != 0) break;
    const int64_t taken = whole ? matrix[i] : left;
    index += coordinates[i] % taken * weight;
    weight *= taken;
    left /= taken;
  }
  if (left != 1) {
    if (replicas != devices || size > devices) throw std::invalid_argument("cannot be placed");
    index = rank % size;
  }
  parts.part[0] = parts.part[0] * size + index;
  parts.cuts[0] *= size;
  return parts;
}

NaiveParts PartsBySpecification(const std::vector<int64_t>& cuts, int64_t optimizer_shards,
                                int64_t rank) {
  NaiveParts parts = {std::vector<int64_t>(cuts.size()), cuts};
  for (size_t d = cuts.size(); d-- > 0; rank /= cuts[d]) parts.part[d] = rank % cuts[d];
  if (!cuts.empty()) {  // `rank` is the number of the replica by now
    parts.part[0] = parts.part[0] * optimizer_shards + rank % optimizer_shards;
    parts.cuts[0] *= optimizer_shards;
  }
  return parts;
}

TestTensor NaiveShard(const TestTensor& full, const ParameterLayout& layout, int64_t rank) {
  const NaiveParts parts = PartsByDefinition(layout, full.shape.size(), rank);
  TestTensor shard = {full.name, full.dtype, {}, ""};
  int64_t elements = 1;
  for (size_t d = 0; d < full.shape.size(); ++d) {
    if (full.shape[d] % parts.cuts[d] != 0) throw std::invalid_argument("does not divide");
    shard.shape.push_back(full.shape[d] / parts.cuts[d]);
    elements *= full.shape[d];
  }
  for (int64_t element = 0; element < elements; ++element) {
    bool held = true;
    int64_t rest = element;
    for (size_t d = full.shape.size(); d-- > 0; rest /= full.shape[d]) {
      held = held && rest % full.shape[d] / shard.shape[d] == parts.part[d];
    }
    const size_t item = full.content.size() / static_cast<size_t>(elements);
    if (held) shard.content += full.content.substr(static_cast<size_t>(element) * item, item);
  }
  return shard;
}

}  // namespace reshard
