// What a checkpoint file holds, whichever container it is: the one place that knows all containers
// that are read.
#ifndef RESHARD_SRC_SOURCE_READ_FILE_TABLE_H_
#define RESHARD_SRC_SOURCE_READ_FILE_TABLE_H_

#include <optional>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/io/source_files.h"
#include "src/source/indexed_file.h"

namespace reshard {

// Looks at the file's first bytes, which tell its container, and has that one's reader read the
// table. Reads headers only. Any thread.
// Errors: kCorrupt (path, parameter, offset, expected, found), kUnsupported for an encrypted or a
// safetensors file, kResourceExhausted beyond kMaxTableBytes, and those of SourceFiles and of
// `memory`, which is asked now and then.
Result<IndexedFile> ReadFileTable(SourceFiles& files, FileId file, const MemoryCheck& memory = {});

// Returns the bytes of which the file states a CRC-32, where its container has one and the file
// does: what its table's reader returns as StatedCrc::covered. Thousands of files need not be
// indexed for it: it reads the last bytes of the file, and where these may state one the first
// ones, which tell the container. A file of no known container states none. Any thread.
// Errors: kCorrupt for a number that is no CRC-32; those of SourceFiles.
Result<std::optional<ByteRange>> CoveredByCrc(SourceFiles& files, FileId file);

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_READ_FILE_TABLE_H_
