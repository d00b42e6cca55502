// ChunkLane: a thread that fills chunks, with another one that writes them where writing has to
// wait for a disk.
//
// Two buffers go back and forth between the threads; a lane that writes by itself has one. A lane
// lives for the whole run. Run() is called by one thread.
#ifndef RESHARD_SRC_WRITE_CHUNK_LANE_H_
#define RESHARD_SRC_WRITE_CHUNK_LANE_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/os/staged_file.h"
#include "src/write/chunk_digest.h"
#include "src/write/chunk_feed.h"
#include "src/write/part_writer.h"

namespace reshard {

class ChunkLane {
 public:
  // Takes the memory that it needs. Everything must outlive the lane.
  ChunkLane(SourceFiles& files, const PartWork& work, ChunkFeed& feed, const LaneOptions& options);

  // Fills and writes chunks until the feed has no more. Failures go to the feed.
  void Run();

 private:
  struct FreeAligned {
    void operator()(std::byte* bytes) const {
      ::operator delete (bytes, std::align_val_t{StagedFile::kAlignment});
    }
  };
  using Buffer = std::unique_ptr<std::byte, FreeAligned>;

  // A filled buffer on its way to the writer.
  struct Filled {
    ChunkFeed::Chunk chunk;
    std::span<const std::byte> bytes;
  };

  Status FillAll(bool hand_over);
  // Returns false where a failure, here or elsewhere, has made the chunk useless.
  Result<bool> Fill(const ChunkFeed::Chunk& chunk, std::span<std::byte> out);
  // Tells the feed from where on the chunk cannot be filled, and why; `status` was of all of it.
  void FailFilling(const ChunkFeed::Chunk& chunk, std::span<std::byte> out, Status status);
  Status Write(const Filled& filled);
  void WriteAll();

  SourceFiles& files_;
  const PartWork& work_;
  ChunkFeed& feed_;
  ChunkDigest sums_;
  std::array<Buffer, 2> buffers_;  // the second one only with a writer

  // Between the two threads. Chunk number n of this lane is in buffer n % 2.
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::array<Filled, 2> filled_;
  uint64_t handed_over_ = 0;
  uint64_t written_ = 0;
  bool closed_ = false;  // nothing more will be handed over
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_CHUNK_LANE_H_
