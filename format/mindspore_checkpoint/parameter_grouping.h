// ParameterGrouping: makes the parameters of a checkpoint of its Values, added in file order.
//
// Adjacent Values of one tag are parts of one parameter: a tensor's contents concatenate, each
// Value repeating dims and type; a MapTensor's Values have dims of their own. Not thread-safe.
//
// Stored for each parameter: name, shape and a StoredArray; for each Value: two ranges (32
// bytes), be it empty or not; for each tensor of a MapTensor: a MapTensorPart. kMaxTableBytes
// bounds them all.
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_PARAMETER_GROUPING_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_PARAMETER_GROUPING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "format/container/file_table.h"
#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

class ParameterGrouping {
 public:
  // Errors: kCorrupt for a Value that is no part of a valid file, kResourceExhausted beyond
  // kMaxTableBytes. Messages say parameter, offset, expected and found, but not the file.
  Status Add(const ParsedValue& value);

  // Ends the last parameter and returns the table of all. Errors: as Add; kCorrupt for a name that
  // comes again.
  Result<FileTable> Finish() &&;

  // In file order; the last one is not complete.
  const std::vector<StoredArray>& arrays() const { return arrays_; }
  // About the bytes of memory that all this takes, spare capacity included.
  size_t memory() const { return memory_; }

 private:
  Status Begin(const ParsedValue& value);
  Status Extend(const ParsedValue& value) const;
  Status Append(const ParsedValue& value);
  Status EndParameter();

  std::vector<StoredArray> arrays_;  // until it ends, the last one's shape is as written
  size_t memory_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_PARAMETER_GROUPING_H_
