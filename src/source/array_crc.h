// The CRC-32 that safetensors files of MindSpore state of their arrays
// (format/safetensors/SPEC.md, "CRC").
#ifndef RESHARD_SRC_SOURCE_ARRAY_CRC_H_
#define RESHARD_SRC_SOURCE_ARRAY_CRC_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/source_files.h"

namespace reshard {

// Of names and contents, in the order of the names.
struct ArrayCrc {
  // MindSpore's number. For an integer without dimensions, MindSpore uses as many zero bytes as the
  // integer says. If it cannot compute a number, as for a negative one, contents count as they are.
  uint32_t mindspore = 0;
  uint32_t plain = 0;  // of contents as they are
};

// Calls `take` with the bytes of `range`, in order, as often as they come in pieces.
using ReadContent = std::function<Status(
    ByteRange range, const std::function<void(std::span<const std::byte>)>& take)>;

// Of the contents of all arrays of `table`, read by `read`. Errors: as `read`.
Result<ArrayCrc> CrcOfArrays(const FileTable& table, const ReadContent& read);

// Calls `take` with the bytes of `range` of a file, in order. `progress` gets the bytes read since
// its last call; it may be empty. Any thread. Errors: as SourceFiles; kCancelled.
Status ReadInSteps(SourceFiles& files, FileId file, ByteRange range,
                   const std::function<void(std::span<const std::byte>)>& take,
                   const std::function<void(uint64_t)>& progress, const std::stop_token& stop);

// Reads the contents of all arrays of `table`, the table of `file`. `progress` and errors: as
// ReadInSteps.
Result<ArrayCrc> CrcOfArrays(SourceFiles& files, FileId file, const FileTable& table,
                             const std::function<void(uint64_t)>& progress,
                             const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_ARRAY_CRC_H_
