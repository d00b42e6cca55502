// StreamFile: the bytes of a planned target file, gathered by a few threads, handed on in order.
#ifndef RESHARD_SRC_WRITE_STREAM_FILE_H_
#define RESHARD_SRC_WRITE_STREAM_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/plan/target_plan.h"
#include "src/write/lost_in_casts.h"

namespace reshard {

struct StreamOptions {
  size_t lanes = 2;           // threads that gather, each with two chunks in memory
  uint64_t chunk_bytes = 0;   // a multiple of the page size
  bool digests = true;        // of a whole file: prove it as files that are written are proved
  std::stop_token stop = {};  // a request ends the call with kCancelled, at the end of a chunk
};

// Takes bytes from offset `offset` of the file on. It may change them before it passes them on.
using ChunkTaker = std::function<Status(uint64_t offset, std::span<std::byte> chunk)>;

// Calls `take` with the bytes `range`, chunk by chunk, in order, from the calling thread. Values
// that casts lost are added to `lost`. Errors: as `take`, FillTarget and Prove, the first by place;
// kCancelled; kResourceExhausted.
Status StreamFile(SourceFiles& files, const TargetPlan& plan, ByteRange range,
                  const StreamOptions& options, LostInCasts& lost, const ChunkTaker& take);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_STREAM_FILE_H_
