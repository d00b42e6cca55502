// Frames: what a file of some container consists of, before anyone knows where contents come from.
//
// What an encoder is told of the arrays of a file, and what it answers. Plain values.
#ifndef RESHARD_FORMAT_CONTAINER_ARRAY_FRAMES_H_
#define RESHARD_FORMAT_CONTAINER_ARRAY_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/box.h"
#include "reshard/byte_range.h"
#include "reshard/dtype.h"
#include "reshard/status.h"
#include "reshard/stored_array.h"

namespace reshard {

// What the headers of a file say of one of its arrays.
struct ArrayHeader {
  std::string_view name;
  DType dtype = DType::kFloat32;
  const Shape* shape = nullptr;
  uint64_t bytes = 0;  // of its content
  // A text or a MapTensor, which only its own container understands, as a file of that container
  // holds it; then the rest, but the name, has no meaning. Null for a tensor.
  const StoredArray* opaque = nullptr;
};

// Encoded bytes, and the content that follows them, which may be empty.
struct Frame {
  std::string literal;
  // Of the row-major bytes of a tensor; for what is opaque, of the file that holds it.
  ByteRange content;
};

// Returns an array of the file by its number; valid until the next call.
using ArrayHeaderAt = std::function<Result<ArrayHeader>(size_t array)>;
// Takes what comes next in the file. Contents are those of the array that was asked for last.
using TakeFrames = std::function<Status(std::vector<Frame> frames)>;

}  // namespace reshard

#endif  // RESHARD_FORMAT_CONTAINER_ARRAY_FRAMES_H_
