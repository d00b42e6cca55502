// Placement: which stored arrays of a source are which boxes of which tensors.
//
// Arithmetic and what was stated; it opens no file. Source asks it, and looks into the files that
// it names. A placement has to answer one question: which arrays cover a box (ForEachPart), and
// which are replicas of one of them (HoldersOf). It may know more. A tensor that it does not place
// lies whole in each file that has it. Implementations are thread-safe.
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
  ArrayKind kind = ArrayKind::kTensor;  // a text or a MapTensor has neither shape nor grid
  DType dtype = DType::kFloat32;
  Shape full_shape;
  Shape shard_shape;
  int64_t stage = 0;  // the source stage that its values come from
  FileId file = 0;    // whose shard tells dtype and shapes
  // The table of that file, FileTable::id(), and where the bytes are there: equal tables say
  // the same of all files that have them. Of what stands by itself, in `rank`, all of its bytes:
  // the content of a text is its bytes's, that of a map its Values', headers included, which tell
  // types and shapes.
  uint64_t table = 0;
  std::vector<ByteRange> content;
  SharedGrid grid = WholeGrid(0);
  // Whose file it is taken from as it stands; nothing where a placement says how it is cut.
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

// A box of a tensor and where its bytes lie.
struct PlacedPiece {
  int64_t rank = 0;
  FileId file = 0;
  Box box;
  std::vector<ByteRange> content;  // one for each Value; together the row-major bytes of `box`
  // Whether the file has the table that tells of the tensor: then every tensor of that table lies
  // in the file where the table says.
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
    // Which of the tensor's it is: where it is in the grid, or its number.
    const std::vector<int64_t>& id;
    Box box;
    const Shape& shape;  // of the array
    ArrayPlace nearest;  // the array that ought to be it, the nearest one
  };
  using PartVisitor = std::function<bool(Part& part)>;
  // Calls visit(part) for each part of a placed tensor that shares elements with `box`, until one
  // of the calls, which may take the box away, returns false: as many calls as there are such
  // parts, however many replicas. Local rank `near` tells which of these is the nearest.
  virtual void ForEachPart(const SourceTensor& tensor, const Box& box, int64_t near,
                           const PartVisitor& visit) const = 0;
  // Returns all arrays that ought to be that part, ascending by rank; those whose files are missing
  // may be left out.
  virtual std::vector<ArrayPlace> HoldersOf(const SourceTensor& tensor, const Part& part) const = 0;
  // Whether files of a stage hold what has this name.
  using IsHeld = std::function<bool(int64_t stage, std::string_view name)>;
  // Says that no file has a part, and which other ranks of what `is_held` takes are missing, too.
  virtual Status NotHeld(const SourceTensor& tensor, const Part& part, const IsHeld& is_held) const;

  // What is known of a placed tensor without a file.
  struct Told {
    int64_t stage = 0;                // that its values come from
    ArrayPlace teller;                // the array that tells all that is not told here
    std::optional<DType> dtype = {};  // if it is told, `full_shape` is, and no file is opened
    const Shape* full_shape = nullptr;
  };
  // Returns nothing if it does not place `name`. Local rank `near` may choose the teller.
  virtual std::optional<Told> Tell(std::string_view /*name*/, int64_t /*near*/) const { return {}; }
  bool Places(std::string_view name) const { return Tell(name, 0).has_value(); }
  // All tensors of the source, where they are stated one by one: files hold nothing but their
  // parts, under any names. Null: a file's table names tensors.
  virtual const PartList* all_tensors() const { return nullptr; }
  // Says how `tensor`, which stands as its teller has it, is cut, and takes its `rank` away where
  // it is; `where` begins messages. Errors: kMismatch where the two do not fit.
  virtual Status Place(SourceTensor& /*tensor*/, std::string_view /*where*/) const { return {}; }

  // The rank of the one file that may have `name`, where there is an index: the one that it says,
  // or that of all it does not name.
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
