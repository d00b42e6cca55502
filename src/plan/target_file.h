// TargetFile: what a target wants one of its files to hold; MakePlan finds where it comes from.
//
// A view: what the files of a target have in common is held once, behind `make`, and boxes are
// computed when an array is asked for.
#ifndef RESHARD_SRC_PLAN_TARGET_FILE_H_
#define RESHARD_SRC_PLAN_TARGET_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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

// What tensors an array is put together from: `pieces`, one behind the other in its row-major
// order, fill it. Piece::tensor is a place in `tensors`.
struct Pieces {
  std::vector<SourceTensor> tensors;
  std::vector<Piece> pieces;
};

// What is no tensor of whole elements, copied as a source file of the target's container holds it.
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

// Makes room in `array` for one tensor and one piece of it, which are still to be said.
inline Pieces& OnePiece(TargetArray& array) {
  Pieces* pieces = std::get_if<Pieces>(&array.content);
  if (pieces == nullptr) pieces = &array.content.emplace<Pieces>();
  pieces->tensors.resize(1);
  pieces->pieces.resize(1);
  return *pieces;
}

struct TargetFile {
  int64_t rank = 0;
  std::string path;                      // relative to the target folder
  const Container* container = nullptr;  // unless `literal` is the file
  FileMetadata metadata = {};
  size_t arrays = 0;
  // Fills in an array by its number, in file order; `array` may hold another one, whose memory is
  // taken: there are very many. Errors: those of finding out what it is.
  std::function<Status(size_t number, TargetArray& array)> make;
  int64_t near = 0;  // the local rank whose arrays are taken where several hold the same
  // Not empty: the whole file, which is in no container, as an index of the others is.
  std::string literal = {};
  uint64_t making_bytes = 0;  // of memory, about, that it holds, or took while it was made
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_TARGET_FILE_H_
