// FileTable: the parameters of a checkpoint file, in file order and by name.
//
// Says nothing of one file only: files of one stage ordinarily have equal tables, so that one may
// stand for many (TableCache). Immutable, so any number of threads may read it.
#ifndef RESHARD_SRC_SOURCE_FILE_TABLE_H_
#define RESHARD_SRC_SOURCE_FILE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "format/mindspore_checkpoint/parameter_grouping.h"
#include "reshard/stored_array.h"

namespace reshard {

class FileTable {
 public:
  // Takes what `grouping`, which is finished, has found.
  explicit FileTable(ParameterGrouping grouping);

  // A number that no other table of this process has or had.
  uint64_t id() const { return id_; }
  // In file order.
  const std::vector<StoredArray>& parameters() const { return parameters_; }
  // Returns the parameter of this name, or null.
  const StoredArray* Find(std::string_view name) const;
  // About the bytes of memory that the table holds.
  size_t memory() const { return memory_; }

  // A hash of names and places: equal tables have equal ones.
  size_t Hash() const;
  friend bool operator==(const FileTable& a, const FileTable& b) {
    return a.parameters_ == b.parameters_;
  }

 private:
  uint64_t id_;
  std::vector<StoredArray> parameters_;
  std::vector<uint32_t> by_name_;  // places in parameters_, in the order of their names
  size_t memory_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_FILE_TABLE_H_
