#include "src/mindspore/cut_parameters.h"

#include <string>

namespace reshard {

void CutParameters::push_back(const CutParameter& parameter) {
  const SourceTensor& tensor = parameter.tensor;
  const Form& form =
      *forms_
           .insert({tensor.kind, tensor.dtype, tensor.full_shape, tensor.shard_shape, tensor.stage,
                    tensor.table, tensor.grid, parameter.grid, parameter.shard_shape})
           .first;
  entries_.push_back({names_.Keep(tensor.name), &form, tensor.file,
                      static_cast<uint32_t>(tensor.content.size()), ranges_.size()});
  ranges_.insert(ranges_.end(), tensor.content.begin(), tensor.content.end());
}

CutParameter CutParameters::operator[](size_t place) const {
  const Entry& entry = entries_[place];
  CutParameter parameter;
  SourceTensor& tensor = parameter.tensor;
  tensor.name = std::string(entry.name);
  tensor.file = entry.file;
  const ByteRange* const ranges = ranges_.data() + entry.first_range;
  tensor.content.assign(ranges, ranges + entry.ranges);
  std::tie(tensor.kind, tensor.dtype, tensor.full_shape, tensor.shard_shape, tensor.stage,
           tensor.table, tensor.grid, parameter.grid, parameter.shard_shape) = *entry.form;
  return parameter;
}

}  // namespace reshard
