// Placement: which file of a source holds which box of which tensor.
//
// Arithmetic and what was stated; it opens no file. Source asks it, and looks into the files that
// it names. Files are numbered by rank. Ranks are grouped into stages: a tensor that is cut lies in
// the files of one stage, and `local` counts the ranks of a stage from 0. A tensor that nothing
// cuts lies whole in each file that has it. Implementations are thread-safe.
#ifndef RESHARD_SRC_SOURCE_PLACEMENT_H_
#define RESHARD_SRC_SOURCE_PLACEMENT_H_

#include <cstdint>
#include <functional>
#include <map>
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

  // The files that are there, by rank.
  const std::map<int64_t, FileId>& files() const { return files_; }

  // The ranks [begin, end) of a stage, whether their files are there or not.
  struct Ranks {
    int64_t begin = 0;
    int64_t end = 0;
  };
  virtual Ranks RanksOf(int64_t stage) const = 0;
  // The stages that a target without layouts takes tensors from, ascending.
  virtual std::vector<int64_t> Stages() const = 0;
  // Whether it says how `name` is cut.
  virtual bool Places(std::string_view name) const = 0;
  // Whether the files of a stage are gone through from the lowest rank on, to list what they hold.
  virtual bool IsAscending() const { return true; }
  // The ranks that by a list hold what `rank` holds, it included; mostly none.
  virtual std::span<const int64_t> StandIns(int64_t /*rank*/) const { return {}; }

  // The rank of the one file that has `name`, where an index says so.
  virtual std::optional<int64_t> HomeOf(std::string_view /*name*/) const { return std::nullopt; }
  // Whether the files are one set, whose tensors are in the order of a target's strategy.
  virtual bool IsFolder() const { return false; }

  // Whose file tells dtype and shape of a tensor, for one who is near `near`.
  struct Teller {
    int64_t stage = 0;
    int64_t local = 0;
  };
  virtual Teller TellerOf(std::string_view name, int64_t near) const = 0;
  // Says how `tensor`, which stands as one file has it, is cut, and takes its `rank` away where it
  // is; `where` begins messages. Errors: kMismatch where the two do not fit.
  virtual Status Place(SourceTensor& tensor, std::string_view where) const = 0;

  // A box of a tensor that a stored array is.
  struct Part {
    // Which of the tensor's it is: where it is in the grid, or its number.
    const std::vector<int64_t>& id;
    Box box;
    const Shape& shape;  // of the array
  };
  using PartVisitor = std::function<bool(Part& part)>;
  // Calls visit(part) for each part of a placed tensor that shares elements with `box`, until one
  // of the calls, which may take the box away, returns false: as many calls as there are such
  // parts, however many replicas.
  virtual void ForEachPart(const SourceTensor& tensor, const Box& box,
                           const PartVisitor& visit) const = 0;
  // Returns the local rank that ought to hold a part, the nearest to `near`; whether its file is
  // there or not. Costs the same for any number of ranks.
  virtual int64_t HolderOf(const SourceTensor& tensor, const Part& part, int64_t near) const = 0;
  // Returns all local ranks that ought to hold it and whose files are there, ascending.
  virtual std::vector<int64_t> HoldersOf(const SourceTensor& tensor, const Part& part) const = 0;
  // Whether files of a stage hold what has this name.
  using IsHeld = std::function<bool(int64_t stage, std::string_view name)>;
  // Says that none of them does, and which other ranks of what `is_held` takes are missing, too.
  virtual Status NotHeld(const SourceTensor& tensor, const Part& part,
                         const IsHeld& is_held) const = 0;

  // Is told of each table that the file of a rank turns out to have.
  virtual void Saw(int64_t /*rank*/, FileId /*file*/, const FileTable& /*table*/) const {}

 protected:
  explicit Placement(std::map<int64_t, FileId> files) : files_(std::move(files)) {}

 private:
  const std::map<int64_t, FileId> files_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_PLACEMENT_H_
