// Writing target files: chunks of any file, gathered, digested and written by a few lanes.
//
// A lane takes the next chunk of whatever file has one, so that one file keeps all lanes busy, and
// files that read the same sources advance together, reading them once.
#ifndef RESHARD_SRC_WRITE_PART_WRITER_H_
#define RESHARD_SRC_WRITE_PART_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stop_token>
#include <vector>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/write/target_part.h"

namespace reshard {

// The most bytes of a chunk; a lane holds up to two.
inline constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

// What is to be written. The functions are called by any lane, several at a time, each part's once.
struct PartWork {
  // Numbers of parts, those that advance together in one group. Groups are begun in this order.
  std::vector<std::vector<size_t>> groups;
  // Plans part number `part` and makes its file. Null where there is nothing to write.
  std::function<Result<std::unique_ptr<TargetPart>>(size_t part, const std::stop_token& stop)> open;
  // All bytes are in the file: proves them, makes them durable and says so on the disk.
  std::function<Status(size_t part, TargetPart& written)> finish;
  // With the bytes of a chunk that was put together in memory; may be empty.
  std::function<void(uint64_t bytes)> gathered;
  // With the bytes written since its last call; may be empty.
  std::function<void(uint64_t bytes)> progress;
};

struct LaneOptions {
  size_t lanes = 2;
  // A thread of its own writes what a lane fills: where writing waits for a disk.
  bool writer_threads = true;
  // The most bytes of a chunk, a multiple of 4096, up to kChunkBytes.
  uint64_t chunk_bytes = kChunkBytes;
  // Bytes of source windows that stay for the files of a group to share. The chunks of large groups
  // are so small that those of one step fit.
  uint64_t window_bytes = uint64_t{64} << 20;
  // Parts that may be in memory at a time, with their plans: no group has more.
  size_t most_open = std::numeric_limits<size_t>::max();
};

// Writes all parts and finishes each. The call ends soon after `stop` is requested, at the end of
// a chunk. Parts that were not finished then are dropped, their files unfinished. Errors: those of
// FillTarget and the functions, the first by place (chunk_feed.h); those of StagedFile; kCancelled;
// kResourceExhausted.
Status WriteParts(SourceFiles& files, const PartWork& work, const LaneOptions& options,
                  const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_PART_WRITER_H_
