// CutParameters: the parameters that the ranks of a target stage cut anew, in little memory.
//
// Very many parameters have few shapes and layouts: what they have in common is held once. Not
// thread-safe while it is filled; then any number of threads may read it.
#ifndef RESHARD_SRC_MINDSPORE_CUT_PARAMETERS_H_
#define RESHARD_SRC_MINDSPORE_CUT_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "reshard/box.h"
#include "reshard/byte_range.h"
#include "reshard/dtype.h"
#include "reshard/stored_array.h"
#include "src/base/name_arena.h"
#include "src/source/placement.h"
#include "src/source/shard_grid.h"

namespace reshard {

struct CutParameter {
  SourceTensor tensor;
  SharedGrid grid =
      WholeGrid(0);  // of the target; of a text or a MapTensor neither this nor the next
  Shape shard_shape;
};

class CutParameters {
 public:
  void push_back(const CutParameter& parameter);

  size_t size() const { return entries_.size(); }
  CutParameter operator[](size_t place) const;

 private:
  // What parameters have in common; the grids by where they are, as caches hold them once.
  using Form =
      std::tuple<ArrayKind, DType, Shape, Shape, int64_t, uint64_t, SharedGrid, SharedGrid, Shape>;
  struct Entry {
    std::string_view name;
    const Form* form;
    FileId file;
    uint32_t ranges;     // so many of ranges_
    size_t first_range;  // and the first
  };

  std::vector<Entry> entries_;
  std::vector<ByteRange> ranges_;
  std::set<Form> forms_;  // node-based: a form stays where it is
  NameArena names_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_MINDSPORE_CUT_PARAMETERS_H_
