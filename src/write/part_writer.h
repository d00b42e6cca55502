// Writing target files: chunks of any file, gathered, digested and written by a few lanes.
//
// A lane takes the next chunk of whatever file has one, so that one file keeps all lanes busy, and
// files that read the same sources advance together, reading them once.
#ifndef RESHARD_SRC_WRITE_PART_WRITER_H_
#define RESHARD_SRC_WRITE_PART_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/cipher/encrypted_block.h"
#include "src/io/source_files.h"
#include "src/os/staged_file.h"
#include "src/plan/target_plan.h"
#include "src/write/part_sink.h"
#include "src/write/target_record.h"

namespace reshard {

// The most bytes of a chunk; a lane holds up to two.
inline constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

// What is to be written. The functions are called by any lane, several at a time.
struct PartWork {
  std::vector<FilePart> parts;
  // Numbers of parts, those that advance together in one group. Groups are begun in this order.
  std::vector<std::vector<size_t>> groups;
  // Plans a file when the turn of a part of it comes, so that few plans are in memory at a time.
  std::function<Result<PlanHandle>(size_t file)> plan;
  // Files are written so, each whole; without a value as planned.
  std::optional<BlockCipher> encryption = {};
  bool digests = true;           // prove what is written, and state its digests in the records
  bool refuse_overflow = false;  // fail where a cast made a finite value infinite or NaN
  std::string fingerprint;       // of the plan of all files, for the records
  SourceNames sources;           // all that plans name, for the records
  WriteOptions write = {};       // how files are written
  // With bytes that were written, or, `kept`, those of a part that need not be; may be empty.
  std::function<void(uint64_t bytes, bool kept)> progress = {};
  std::function<void()> part_done = {};  // that is whole, or kept; may be empty
};

// What has been done so far; may be looked at meanwhile.
struct WriteCounts {
  std::atomic<uint64_t> kept = 0;           // parts that need not be written
  std::atomic<uint64_t> content_bytes = 0;  // that the others take from the sources
  std::atomic<uint64_t> gathered = 0;       // bytes put together in memory
  std::atomic<uint64_t> direct = 0;         // parts that were written directly
  std::atomic<uint64_t> buffered = 0;       // parts that were not
};

struct LaneOptions {
  size_t lanes = 2;
  // A thread of its own writes what a lane fills: where writing waits for a disk.
  bool writer_threads = true;
  // The most bytes of a chunk, a multiple of 4096, up to kChunkBytes. Of what is encrypted at least
  // kPlainBlockBytes, or as many as the largest file has.
  uint64_t chunk_bytes = kChunkBytes;
  // Bytes of source windows that stay for the files of a group to share. The chunks of large groups
  // are so small that those of two steps fit half of them.
  uint64_t window_bytes = uint64_t{64} << 20;
  // Parts that may be in memory at a time, with their plans: no group has more.
  size_t most_open = std::numeric_limits<size_t>::max();
};

// Writes all parts that `sink` has not kept, proves each, and hands it to `sink` to be finished.
// The call ends soon after `stop` is requested, at the end of a chunk. Parts that were not finished
// then are dropped, their files unfinished. Errors: kMismatch for what a cast lost and was not to;
// those of FillTarget, of Prove, of the plans and
// of `sink`, the first by place (chunk_feed.h); those of StagedFile; kCancelled;
// kResourceExhausted.
Status WriteParts(SourceFiles& files, const PartWork& work, const PartSink& sink,
                  const LaneOptions& options, WriteCounts& counts, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_PART_WRITER_H_
