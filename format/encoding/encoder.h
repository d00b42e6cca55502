// Encoding of checkpoint files: the one place that knows all containers that are written.
#ifndef RESHARD_FORMAT_ENCODING_ENCODER_H_
#define RESHARD_FORMAT_ENCODING_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/container/container.h"
#include "reshard/status.h"
#include "reshard/tensor.h"

namespace reshard {

// Whether files of a container can hold arrays of a kind, and, of tensors, of `dtype`.
bool CanHold(Container container, ArrayKind kind, DType dtype);

// Returns ".ckpt" and the like.
std::string_view ExtensionOf(Container container);

// Says what a file of `arrays` arrays consists of, in file order: calls `take` for each array once,
// one after the other, so that what is said of very many need not be in memory together, and
// `take_literal` for what is no array's. All sizes are known before a byte of content is read. An
// array may be asked for more than once, and in another order than that of their numbers, as where
// one header stands before all contents. Errors: kUnsupported for what the container cannot hold;
// those of what is called.
Status Encode(Container container, const FileMetadata& metadata, size_t arrays,
              const ArrayHeaderAt& header_at, const TakeLiteral& take_literal,
              const TakeFrames& take);

// Where files of a container state their CRC-32.
enum class CrcPlace {
  kBehind,    // the last bytes, of all before them
  kInHeader,  // of names and contents that follow
};
CrcPlace CrcPlaceOf(Container container);

// What stands there.
struct CrcText {
  uint64_t offset = 0;
  std::string bytes;  // as many whatever the number is
};

// The bytes of a file that TextOfCrc looks at, or all of a smaller one.
inline constexpr size_t kCrcHeadBytes = 256;

// Returns how a file of `file_size` bytes that was encoded with FileMetadata::states_crc and begins
// with `head` states the number `crc`. Errors: kCorrupt for a file that has no place for it.
Result<CrcText> TextOfCrc(CrcPlace place, std::span<const std::byte> head, uint64_t file_size,
                          uint32_t crc);

}  // namespace reshard

#endif  // RESHARD_FORMAT_ENCODING_ENCODER_H_
