// Placement: which stored arrays of a source hold which boxes of its tensors.
//
// It has arithmetic and listed facts, and opens no file. Source asks it, and then reads the files
// that it names. A placement has to answer one question: which arrays cover a box (ForEachPart),
// and which are their replicas (HoldersOf). It may know more. A tensor that it does not place is
// whole in each file that has it. Implementations are thread-safe.
#ifndef RESHARD_SRC_SOURCE_PLACEMENT_H_
#define RESHARD_SRC_SOURCE_PLACEMENT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/source/part_list.h"
#include "src/source/ranked_files.h"
#include "src/source/shard_grid.h"
#include "src/tensor/byte_box.h"

namespace reshard {

// A tensor of a source as a whole. Boxes and shapes count elements.
struct SourceTensor {
  std::string name;
  ArrayKind kind = ArrayKind::kTensor;  // a text or a MapTensor has no shape and no grid
  DType dtype = DType::kFloat32;
  Shape full_shape;
  Shape shard_shape;
  int64_t stage = 0;  // the source stage that its values come from
  FileId file = 0;    // the file whose shard gives dtype and shapes
  // The file's table, FileTable::id(), and the places of the bytes there. Equal tables say the same
  // about all their files. For an array that stands by itself, in `rank`, these are all its bytes:
  // the content of a text, or a MapTensor's Values with their headers, which give types and shapes.
  uint64_t table = 0;
  std::vector<ByteRange> content;
  SharedGrid grid = WholeGrid(0);
  // The rank whose file has the whole array. No value if a placement says how it is cut.
  std::optional<int64_t> rank;

  // Of all its elements.
  uint64_t Bytes() const {
    if (!rank) return TensorBytes(full_shape, dtype).value_or(0);
    uint64_t bytes = 0;
    for (const ByteRange& range : content) bytes += range.length;
    return bytes;
  }
  TensorInfo Info() const {
    return {name, kind, dtype,
            kind == ArrayKind::kTensor || kind == ArrayKind::kPacked ? full_shape : Shape(),
            Bytes()};
  }
};

// A box of a tensor, and the place of its bytes.
struct PlacedPiece {
  int64_t rank = 0;
  FileId file = 0;
  Box box;
  std::vector<ByteRange> content;  // one for each Value; together the row-major bytes of `box`
  // Whether the file has the table that describes the tensor. Then every tensor of the table is at
  // its place in the file.
  bool as_told = false;
};

class Placement {
 public:
  virtual ~Placement() = default;
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  const RankedFiles& ranks() const { return ranks_; }

  // A box of a tensor that a stored array is.
  struct Part {
    // Which part of the tensor it is: its place in the grid, or its number.
    const std::vector<int64_t>& id;
    Box box;
    const Shape& shape;  // of the array
    ArrayPlace nearest;  // the array that ought to be it, the nearest one
  };
  using PartVisitor = std::function<bool(Part& part)>;
  // Calls visit(part) for each part of a placed tensor that shares elements with `box`, until a
  // call returns false. A call may move the box away. There is one call for a part, for any number
  // of replicas. Local rank `near` decides which replica is the nearest.
  virtual void ForEachPart(const SourceTensor& tensor, const Box& box, int64_t near,
                           const PartVisitor& visit) const = 0;
  // Returns all arrays that should be that part, ascending by rank. Arrays in missing files may be
  // left out.
  virtual std::vector<ArrayPlace> HoldersOf(const SourceTensor& tensor, const Part& part) const = 0;
  // Whether files of a stage have an array of this name.
  using IsHeld = std::function<bool(int64_t stage, std::string_view name)>;
  // Returns the error that no file has a part. It also names other missing ranks of stages that
  // `is_held` accepts.
  virtual Status NotHeld(const SourceTensor& tensor, const Part& part, const IsHeld& is_held) const;

  // Facts about a placed tensor that need no file.
  struct Told {
    int64_t stage = 0;                // that its values come from
    ArrayPlace teller;                // the array with all other facts
    std::optional<DType> dtype = {};  // if it is told, `full_shape` is, and no file is opened
    const Shape* full_shape = nullptr;
  };
  // Returns no value if it does not place `name`. Local rank `near` may choose the source of the
  // facts.
  virtual std::optional<Told> Tell(std::string_view /*name*/, int64_t /*near*/) const { return {}; }
  bool Places(std::string_view name) const { return Tell(name, 0).has_value(); }
  // All tensors of the source, if they are listed one by one. Then files have only their parts,
  // under any names. Null: a file's table names tensors.
  virtual const PartList* all_tensors() const { return nullptr; }
  // Sets how `tensor` is cut, and clears its `rank` if it is cut. `tensor` is as in its describing
  // file. `where` begins messages. Errors: kMismatch if the two do not fit.
  virtual Status Place(SourceTensor& /*tensor*/, std::string_view /*where*/) const { return {}; }

  // With an index: the rank of the only file that may have `name`. It is the file that the index
  // names, or the file for all unnamed tensors.
  virtual std::optional<int64_t> HomeOf(std::string_view /*name*/) const { return {}; }
  // Is told of each table that the file of a rank turns out to have.
  virtual void Saw(int64_t /*rank*/, FileId /*file*/, const FileTable& /*table*/) const {}

 protected:
  explicit Placement(RankedFiles ranks) : ranks_(std::move(ranks)) {}

 private:
  const RankedFiles ranks_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_PLACEMENT_H_
