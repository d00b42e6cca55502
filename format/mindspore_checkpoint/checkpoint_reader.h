// Reading of a checkpoint of MindSpore: by hopping from header to header, never touching content
// (SPEC.md, "Reading" and "Trailer").
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_READER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_READER_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Reads the table of the file that begins with `head`, its first page or all of a smaller one:
// reads the pages that hold headers and the last 17 bytes; where headers lie close together, ahead
// of them.
// Errors: kCorrupt (path, parameter, offset, expected, found), kResourceExhausted beyond
// kMaxTableBytes, and those of `file` and of `memory`, which is asked now and then.
Result<TableOfFile> ReadMindSporeTable(const FileBytes& file, std::vector<std::byte> head,
                                       const MemoryCheck& memory);

// Returns what the CRC-32 of the file's trailer is of, or nothing where it has no trailer. Reads
// the last 17 bytes only. Errors: kCorrupt when the number is not one of 32 bits; those of `file`.
Result<std::optional<ByteRange>> CoveredByTrailer(const FileBytes& file);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_READER_H_
