// Reading of a checkpoint of MindSpore: by hopping from header to header, never touching content
// (SPEC.md, "Reading" and "Trailer").
#ifndef RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_READER_H_
#define RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_READER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "format/container/container.h"
#include "format/container/file_table.h"
#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/base/memory_check.h"

namespace reshard {

// Headers are *close* where each Value takes fewer bytes than this: then reading what is between
// them costs less than another request.
inline constexpr uint64_t kHeaderDistance = uint64_t{16} << 10;
// The same on a network or FUSE file system, where a request waits for a server.
inline constexpr uint64_t kRemoteHeaderDistance = uint64_t{256} << 10;

// The most bytes of a block of close headers: about what file systems ask a server for at a time.
inline constexpr uint64_t kMostHeaderBlock = uint64_t{1} << 20;

// The most headers that are asked for ahead: where a request waits for a server, or of a file that
// is like another one.
inline constexpr size_t kMostHeadersAhead = 15;

// Reads the table of the file that begins with `head`, its first page or all of a smaller one.
//
// Besides `head` and the last 17 bytes it reads, each up to the end of a page,
// - where headers are not close: a request for each Value, of its header;
// - where they are: blocks of as many bytes as the Values since the last one that was not close
//   take, but no fewer than the distance above and no more than kMostHeaderBlock, from the begin
//   of a page on. So the first block takes one distance, and each takes at most twice as many as
//   the one before it.
// On a network or FUSE file system, where headers are not close, those of as many as
// kMostHeadersAhead of the next Values are asked for before they are wanted, 64 KiB each, where
// they lie if lengths repeat as they did before. No more are asked for in vain than there were
// headers that lay where they were guessed, and kMostHeadersAhead; and what was asked for is read
// up to its end, whatever is close. A header that goes on behind what was read, because it is
// longer than all before it or crosses the end of a block, is read once more, whole. A block that
// cannot be read is no error while the bytes can that are needed.
//
// Errors: kCorrupt (path, parameter, offset, expected, found), kResourceExhausted beyond
// kMaxTableBytes, and those of `file` and of `memory`, which is asked now and then.
//
// Of a local file, what lies between headers is read ahead as far as they have been close (64 KiB)
// behind, up to 2 MiB and the end of a large page.
//
// Where `like`, the table of another file or null, is what would be made, it is what is returned.
// As long as Values lie where it says, the file is read ahead as far as headers are close there, up
// to 8 MiB, and of those that are not as many as kMostHeadersAhead, each its own bytes only.
Result<TableOfFile> ReadMindSporeTable(const FileBytes& file, std::vector<std::byte> head,
                                       const MemoryCheck& memory,
                                       const std::shared_ptr<const FileTable>& like);

// Whether who reads this table from a disk mostly waits for one header after the other: where of
// eight Values one is too long for what is between its header and the next one to be read ahead.
bool WaitsForHeaders(const FileTable& table);

// Returns what the CRC-32 of the file's trailer is of, or nothing where it has no trailer. Reads
// the last 17 bytes only. Errors: kCorrupt when the number is not one of 32 bits; those of `file`.
Result<std::optional<ByteRange>> CoveredByTrailer(const FileBytes& file);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_READER_H_
