// Where the tensors of a source lie.
#ifndef RESHARD_SRC_SOURCE_PLACEMENT_H_
#define RESHARD_SRC_SOURCE_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/box.h"
#include "reshard/byte_range.h"
#include "reshard/dtype.h"
#include "reshard/stored_array.h"
#include "src/io/source_files.h"
#include "src/source/shard_grid.h"

namespace reshard {

// A parameter of the source as a whole. Boxes and shapes count elements.
struct SourceTensor {
  std::string name;
  ArrayKind kind = ArrayKind::kTensor;  // a text or a MapTensor has neither shape nor grid
  DType dtype = DType::kFloat32;
  Shape full_shape;
  Shape shard_shape;
  int64_t stage = 0;  // the source stage that its values come from
  FileId file = 0;    // whose shard tells dtype and shapes
  // The table of that file, FileTable::id(), and where the Values' content is there: equal
  // tables say the same of all files that have them.
  uint64_t table = 0;
  std::vector<ByteRange> content;
  SharedGrid grid = WholeGrid(0);
};

// A box of a tensor and where its bytes lie.
struct PlacedPiece {
  int64_t rank = 0;
  FileId file = 0;
  Box box;
  std::vector<ByteRange> content;  // one for each Value; together the row-major bytes of `box`
};

// Returns the tensor of a parameter that stands whole in `file`.
SourceTensor StandaloneTensor(const StoredArray& parameter, int64_t stage, FileId file);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_PLACEMENT_H_
