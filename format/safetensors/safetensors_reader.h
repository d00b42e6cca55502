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

// Reads the table of the file that begins with `head`, its first page or all of a smaller file.
// Reads the rest of the header in blocks of up to 1 MiB, each once. Arrays are in the order of
// their bytes; empty arrays are in the order of the header. Besides the table, whose memory it
// counts, it holds a block and the header's metadata.
//
// Errors:
//   kCorrupt: the safetensors library would refuse the file, or a name is repeated; names path,
//   tensor,
//     expected and found values
//   kUnsupported: elements smaller than a byte, in rows that do not fill bytes
//   kResourceExhausted: metadata beyond kMaxTableBytes (the header's length bounds the tensors)
//   as `file` and `memory`, which is called now and then
Result<TableOfFile> ReadSafetensorsTable(const FileBytes& file, std::span<const std::byte> head,
                                         const MemoryCheck& memory);

// Returns whether the file's header has the text `crc_num`, or a backslash, which may stand for any
// letter. Only the table tells whether it is metadata. Reads the header up to there. Errors: as
// `file`.
Result<bool> MayStateCrc(const FileBytes& file);

}  // namespace reshard

#endif  // RESHARD_FORMAT_SAFETENSORS_SAFETENSORS_READER_H_
