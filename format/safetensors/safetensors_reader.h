// Reading of a safetensors file: its header, never touching content (SPEC.md, "Reading").
#ifndef RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_READER_H_
#define RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_READER_H_

#include <cstddef>
#include <span>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Returns how surely a file that begins with `head` is one, by eight bytes of length and the first
// of JSON. One with too long a header is possible: ReadSafetensorsTable says that it is too long.
Likeness LikenessOfSafetensors(std::span<const std::byte> head);

// Reads the table of the file that begins with `head`, its first page or all of a smaller one: the
// rest of the header in blocks of up to 1 MiB, each once. Arrays are in the order of their bytes;
// of those without bytes, in that of the header. Besides the table, whose memory it counts, it
// holds one block and the header's metadata.
//
// Errors: kCorrupt (path, tensor, expected, found) for what the safetensors library refuses, and
// for a name that comes twice; kUnsupported for a tensor of elements of less than a byte whose rows
// do not fill bytes; kResourceExhausted for metadata beyond kMaxTableBytes (the header's length
// bounds the tensors); those of `file` and of `memory`, which is asked now and then.
Result<TableOfFile> ReadSafetensorsTable(const FileBytes& file, std::span<const std::byte> head,
                                         const MemoryCheck& memory);

// Returns whether the file's header has the letters of metadata `crc_num`; only the table tells
// whether that is what they are. Reads the header up to there. Errors: those of `file`.
Result<bool> MayStateCrc(const FileBytes& file);

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_READER_H_
