// TargetFile: the arrays that a target wants in one of its files. MakePlan finds their sources.
//
// A view: the common facts of a target's files are held once, behind `make`, and boxes are computed
// when an array is asked for.
#ifndef RESHARD_SRC_PLAN_TARGET_FILE_H_
#define RESHARD_SRC_PLAN_TARGET_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "format/container/container.h"
#include "reshard/status.h"
#include "reshard/tensor.h"
#include "src/io/source_files.h"
#include "src/source/placement.h"
#include "src/tensor/piece.h"

namespace reshard {

// The pieces of tensors that make an array: one after the other, in row-major order, they fill it.
// Piece::tensor is an index into `tensors`.
struct Pieces {
  std::vector<SourceTensor> tensors;
  std::vector<Piece> pieces;
};

// An array other than a tensor of whole elements. It is copied as a source file in the target's
// container holds it.
struct Opaque {
  std::shared_ptr<const StoredArray> array;  // of the table of `file`
  FileId file = 0;
};

struct TargetArray {
  std::string name;  // in the target
  DType dtype = DType::kFloat32;
  Shape shape;
  std::variant<Pieces, Opaque> content;
};

// Makes room in `array` for a tensor with a single piece; the caller sets them.
inline Pieces& OnePiece(TargetArray& array) {
  Pieces* pieces = std::get_if<Pieces>(&array.content);
  if (pieces == nullptr) pieces = &array.content.emplace<Pieces>();
  pieces->tensors.resize(1);
  pieces->pieces.resize(1);
  return *pieces;
}

// A file of the source that is copied as it is.
struct CopiedFile {
  FileId file = 0;
  uint64_t size = 0;
};

struct TargetFile {
  int64_t rank = 0;                      // the file's number; Target::Plan sets it and the path
  std::string path = {};                 // relative to the target folder
  const Container* container = nullptr;  // null: the file is `literal` or `copied`
  FileMetadata metadata = {};
  size_t arrays = 0;
  // Fills in an array by its number, in file order. `array` may hold another one, whose memory is
  // reused, as there are very many. Errors: from describing the array.
  std::function<Status(size_t number, TargetArray& array)> make;
  int64_t near = 0;  // the local rank whose arrays are preferred if several hold the same
  // Not empty: the whole file, which is in no container, as an index of the others is.
  std::string literal = {};
  std::optional<CopiedFile> copied = {};  // the whole file
  uint64_t making_bytes = 0;  // of memory, about, that it holds, or took while it was made
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_TARGET_FILE_H_
