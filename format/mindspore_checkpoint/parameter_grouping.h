// ParameterGrouping: makes the parameters of a checkpoint from its Values, added in file order.
//
// Adjacent Values with the same tag are parts of one parameter. The contents of a tensor's Values
// are concatenated; each repeats dims and type. A MapTensor's Values have their own dims. Not
// thread-safe.
//
// It stores: for each parameter, the data of a TableBuilder; for each Value, two ranges (32 bytes),
// even if it is empty; for each tensor of a MapTensor, a StoredArray::MapTensorPart. kMaxTableBytes
// bounds all of it.
//
// Files of a stage ordinarily hold the same at the same places. So Values are compared with the
// table of another file first. They are stored only after the first difference.
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_PARAMETER_GROUPING_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_PARAMETER_GROUPING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/container/file_table.h"
#include "format/mindspore_checkpoint/mindspore_container.h"
#include "format/mindspore_checkpoint/value_parser.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

class ParameterGrouping {
 public:
  // `like`: the table of another file, or null.
  explicit ParameterGrouping(std::shared_ptr<const FileTable> like = nullptr);

  // Errors: kCorrupt for a Value that is no part of a valid file, kResourceExhausted beyond
  // kMaxTableBytes. Messages say parameter, offset, expected and found, but not the file.
  Status Add(const ParsedValue& value);

  // Ends the last parameter and returns the table, or the other file's table if both are equal.
  // Errors: as Add; kCorrupt for a repeated name.
  Result<std::shared_ptr<const FileTable>> Finish() &&;

  // About the bytes of memory that all this and the table take, spare capacity included.
  size_t memory() const { return builder_.memory() + last_bytes_; }
  // The additional memory of Finish.
  size_t BytesToFinish() const { return builder_.BytesToFinish(); }

 private:
  // A parameter that may get further Values.
  struct Parameter {
    std::string name;
    ArrayKind kind = ArrayKind::kTensor;
    DType dtype = DType::kFloat32;
    Shape shape;  // as written
    uint64_t bytes = 0;
    std::vector<ByteRange> framed;
    std::vector<ByteRange> content;
    std::vector<StoredArray::MapTensorPart> map_tensor;
  };

  // Whether a Value is a whole parameter, the one that comes next in the other file.
  bool IsAsThere(const ParsedValue& value) const;
  // Stores the Values that were equal in the other file, and ends the comparison.
  void Store();
  Status Begin(const ParsedValue& value);
  Status Extend(const ParsedValue& value) const;
  Status Append(const ParsedValue& value);
  Status EndParameter();
  Status CheckContent();

  std::shared_ptr<const FileTable> like_;      // null: not compared any more
  size_t alike_ = 0;                           // so many are as there
  bool zero_dims_ = false;                     // of the last Value: dims are [0] as written
  TableBuilder builder_{kMindSporeContainer};  // of the parameters before the last
  bool has_last_ = false;
  Parameter last_;         // its memory is the next one's
  size_t last_bytes_ = 0;  // of memory
};

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_PARAMETER_GROUPING_H_
