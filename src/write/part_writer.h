// Writing target files: a few lanes gather, digest and write chunks of any file.
//
// A lane takes the next chunk of any file that has one. So one file keeps all lanes busy, and files
// that read the same sources advance together and read them once.
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

// The parts to write. Any lane may call the functions, several at a time.
struct PartWork {
  std::vector<FilePart> parts;
  // Numbers of parts, those that advance together in one group. Groups are begun in this order.
  std::vector<std::vector<size_t>> groups;
  // Plans a file when the turn of its first part comes, so that few plans are in memory at a time.
  std::function<Result<PlanHandle>(size_t file)> plan;
  // Files are written so, each whole; without a value as planned.
  std::optional<BlockCipher> encryption = {};
  bool digests = true;           // prove the written bytes, and state their digests in the records
  bool refuse_overflow = false;  // fail if a cast made a finite value infinite or NaN
  std::string fingerprint;       // of the plan of all files, for the records
  SourceNames sources;           // all sources of the plans, for the records
  WriteOptions write = {};       // how files are written
  // With bytes that were written, or, `kept`, those of a part that need not be; may be empty.
  std::function<void(uint64_t bytes, bool kept)> progress = {};
  std::function<void()> part_done = {};  // that is whole, or kept; may be empty
};

// Counts of the finished work. Any thread may read them meanwhile.
struct WriteCounts {
  std::atomic<uint64_t> kept = 0;           // parts that need not be written
  std::atomic<uint64_t> content_bytes = 0;  // that the others take from the sources
  std::atomic<uint64_t> gathered = 0;       // bytes put together in memory
  std::atomic<uint64_t> direct = 0;         // parts that were written directly
  std::atomic<uint64_t> buffered = 0;       // parts that were not
};

struct LaneOptions {
  size_t lanes = 2;
  // A thread of its own writes the chunks that a lane fills. Useful if writing waits for a disk.
  bool writer_threads = true;
  // The most bytes of a chunk, a multiple of 4096, up to kChunkBytes. For an encrypted file: at
  // least kPlainBlockBytes, or the size of the largest file.
  uint64_t chunk_bytes = kChunkBytes;
  // Bytes of source windows that stay for the files of a group to share. In large groups chunks are
  // small, so that the bytes of two steps fit half the windows.
  uint64_t window_bytes = uint64_t{64} << 20;
  // Parts that may be in memory at a time, with their plans: no group has more.
  size_t most_open = std::numeric_limits<size_t>::max();
};

// Writes all parts that `sink` has not kept, proves each, and gives it to `sink` to finish. The
// call ends soon after a request of `stop`, at the end of a chunk. Parts that are unfinished then
// are dropped, and so are their files.
// Errors:
//   kMismatch: a cast lost a value, which the options refuse
//   errors of FillTarget, Prove, the plans and `sink`: the first one by place (chunk_feed.h)
//   errors of StagedFile
//   kCancelled, kResourceExhausted
Status WriteParts(SourceFiles& files, const PartWork& work, const PartSink& sink,
                  const LaneOptions& options, WriteCounts& counts, const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_PART_WRITER_H_
