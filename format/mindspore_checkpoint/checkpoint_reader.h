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

// Headers are *close* if each Value takes fewer bytes than this. Then reading the bytes in between
// costs less than another request.
inline constexpr uint64_t kHeaderDistance = uint64_t{16} << 10;
// The same on a network or FUSE file system, on which a request waits for a server.
inline constexpr uint64_t kRemoteHeaderDistance = uint64_t{256} << 10;

// The most bytes in a block of close headers: about the size of a file system's request to a
// server.
inline constexpr uint64_t kMostHeaderBlock = uint64_t{1} << 20;

// The most headers that are requested ahead, from a server or in a file that is like another one.
inline constexpr size_t kMostHeadersAhead = 15;

// Reads the table of the file that begins with `head`, its first page or all of a smaller file.
//
// It reads `head`, the last 17 bytes, and these ranges, each up to the end of a page:
// - If headers are not close: a request for each Value, with its header.
// - If headers are close: blocks from the begin of a page on. A block has as many bytes as the
//   Values
//   since the last one that was not close. It has at least the distance above, and at most
//   kMostHeaderBlock. So the first block has that distance, and each is at most twice the last one.
//
// A header that continues behind the read bytes, because it is the longest so far or crosses the
// end of a block, is read again as a whole. A block that cannot be read is an error only if needed
// bytes cannot be read.
//
// On a network or FUSE file system, headers that are not close are requested ahead: up to
// kMostHeadersAhead, 64 KiB each, at guessed places. A guess assumes that lengths repeat. The
// number of useless requests is at most the number of correct guesses plus kMostHeadersAhead.
// Requested bytes are read to their end, close or not.
//
// In a local file, bytes between headers are read ahead. The distance is as long as headers have
// been close (64 KiB) so far, at most 2 MiB and to the end of a large page.
//
// `like` is the table of another file, or null. If both tables would be equal, it is the result. As
// long as Values lie at its places, the file is read ahead as far as headers are close there, up to
// 8 MiB. Up to kMostHeadersAhead headers that are not close are requested ahead, with their exact
// bytes.
//
// Errors: kCorrupt (path, parameter, offset, expected, found); kResourceExhausted beyond
// kMaxTableBytes; as `file` and `memory`, which is called now and then.
Result<TableOfFile> ReadMindSporeTable(const FileBytes& file, std::vector<std::byte> head,
                                       const MemoryCheck& memory,
                                       const std::shared_ptr<const FileTable>& like);

// Whether reading this table from a disk mostly waits for one header after the other. It does if
// one of eight Values is too long for reading ahead from its header to the next one.
bool WaitsForHeaders(const FileTable& table);

// Returns how many bytes the CRC-32 in the file's trailer covers, or no value if there is no
// trailer. Reads the last 17 bytes only. Errors: kCorrupt if the number exceeds 32 bits; as `file`.
Result<std::optional<uint64_t>> CoveredByTrailer(const FileBytes& file);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDSPORE_CHECKPOINT_CHECKPOINT_READER_H_
