#include "src/write/part_writer.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/os/file_pages.h"
#include "src/os/memory_usage.h"
#include "src/os/threads.h"
#include "src/write/chunk_feed.h"
#include "src/write/encrypted_chunk.h"
#include "src/write/gather.h"
#include "src/write/target_digest.h"

namespace reshard {
namespace {

// A thread that fills chunks, with another one that writes them if writing has to wait for a disk.
//
// Two buffers go back and forth between the threads; a lane that writes by itself has one. A lane
// lives for the whole run. Run() is called by one thread.
class ChunkLane {
 public:
  // A lane without a second buffer writes by itself. Everything must outlive the lane.
  ChunkLane(SourceFiles& files, const PartWork& work, ChunkFeed& feed, WriteCounts& counts,
            std::array<ReservedMemory, 2> buffers)
      : files_(files), work_(work), feed_(feed), counts_(counts), buffers_(std::move(buffers)) {}

  // Fills and writes chunks until the feed has no more. Failures go to the feed.
  void Run();

 private:
  // A filled buffer on its way to the writer.
  struct Filled {
    ChunkFeed::Chunk chunk;
    std::span<const std::byte> bytes;
    EncryptedChunk encrypted;  // if the file is encrypted, used instead of the bytes
  };

  Status FillAll(bool hand_over);
  // Returns false if a failure, here or elsewhere, has made the chunk useless.
  Result<bool> Fill(const ChunkFeed::Chunk& chunk, std::span<std::byte> out);
  // Tells the feed the first place of the chunk that cannot be filled, and the reason. `status` was
  // the result for the whole chunk.
  void FailFilling(const ChunkFeed::Chunk& chunk, std::span<std::byte> out, Status status);
  Status Write(const Filled& filled);
  void WriteAll();

  SourceFiles& files_;
  const PartWork& work_;
  ChunkFeed& feed_;
  WriteCounts& counts_;
  ChunkDigest sums_;
  std::vector<TargetBytes> later_;  // that are read ahead
  std::array<ReservedMemory, 2> buffers_;

  // Between the two threads. Chunk number n of this lane is in buffer n % 2.
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::array<Filled, 2> filled_;
  uint64_t handed_over_ = 0;
  uint64_t written_ = 0;
  bool closed_ = false;  // the lane hands over no more chunks
};

void ChunkLane::Run() {
  std::optional<Thread> writer;
  Status status = CatchOutOfMemory([&]() -> Status {
    if (buffers_[1].data() == nullptr) return {};
    auto started = Thread::Start([this] { WriteAll(); });
    if (started.ok()) writer.emplace(std::move(*started));  // else this thread does it all
    return {};
  });
  if (status.ok()) {
    status = CatchOutOfMemory([&] { return FillAll(writer.has_value()); });
  }
  if (!status.ok()) feed_.Fail(std::move(status));
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Status ChunkLane::FillAll(bool hand_over) {
  for (uint64_t number = 0;;) {  // of the chunks that are handed over
    const size_t at = hand_over ? number % buffers_.size() : 0;
    if (hand_over) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return handed_over_ - written_ < buffers_.size(); });
    }
    const std::optional<ChunkFeed::Chunk> chunk = feed_.Take();
    if (!chunk) return {};
    const std::span<std::byte> out(buffers_[at].data(), chunk->range().length);
    RESHARD_ASSIGN_OR_RETURN(const bool useful, Fill(*chunk, out));
    if (!useful) continue;
    counts_.gathered += out.size();
    Filled filled{*chunk, out, {}};
    if (work_.encryption) {
      RESHARD_ASSIGN_OR_RETURN(filled.encrypted,
                               EncryptChunk(*work_.encryption, chunk->range().offset, out));
    }
    if (!hand_over) {
      RESHARD_RETURN_IF_ERROR(Write(filled));
      continue;
    }
    const std::scoped_lock lock(mutex_);
    filled_[at] = std::move(filled);
    ++handed_over_;
    ++number;
    changed_.notify_all();
  }
}

void ChunkLane::FailFilling(const ChunkFeed::Chunk& chunk, std::span<std::byte> out,
                            Status status) {
  // In steps that end at the same places for every size of chunks.
  constexpr uint64_t kStep = uint64_t{64} << 10;
  const ByteRange range = chunk.range();
  uint64_t failing = range.offset;
  for (uint64_t offset = range.offset; offset < range.end();) {
    const uint64_t end = std::min(range.end(), (offset / kStep + 1) * kStep);
    Status filled =
        FillTarget(files_, chunk.part().plan, offset, out.first(end - offset), nullptr, nullptr);
    if (!filled.ok()) {
      failing = offset - offset % kStep;
      status = std::move(filled);
      break;
    }
    offset = end;
  }
  feed_.FailAt(chunk, failing, std::move(status));
}

Result<bool> ChunkLane::Fill(const ChunkFeed::Chunk& chunk, std::span<std::byte> out) {
  TargetPart& part = chunk.part();
  const uint64_t offset = chunk.range().offset;
  // The disk reads ahead while this chunk is filled. Filling it reports any error of a file.
  later_.clear();
  for (const auto& [later, range] : chunk.later()) {
    later_.push_back({&later->plan, range, later->range.end()});
  }
  static_cast<void>(PrefetchTargets(files_, later_));
  // Digested here, by the thread that has the bytes in its cache, while the other one waits for the
  // disk.
  if (part.digest) sums_.Begin(part.plan, chunk.range());
  Status filled =
      FillTarget(files_, part.plan, offset, out, part.digest ? &sums_ : nullptr, &part.lost);
  if (!filled.ok()) {
    FailFilling(chunk, out, std::move(filled));
    return false;
  }
  if (!part.digest) return true;
  sums_.AddTarget(offset, out);
  if (!feed_.WaitForBaton(chunk)) return false;
  part.digest->AddChunk(out, sums_);
  feed_.PassBaton(chunk);
  return true;
}

Status ChunkLane::Write(const Filled& filled) {
  StagedFile& file = filled.chunk.part().file;
  RESHARD_RETURN_IF_ERROR(work_.encryption
                              ? file.WritePieces(filled.encrypted.offset, filled.encrypted.pieces)
                              : file.WriteAt(filled.chunk.range().offset, filled.bytes));
  if (work_.progress) work_.progress(filled.bytes.size(), false);
  feed_.Written(filled.chunk);
  return {};
}

void ChunkLane::WriteAll() {
  while (true) {
    Filled filled;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return handed_over_ > written_ || closed_; });
      if (handed_over_ == written_) return;
      filled = std::move(filled_[written_ % buffers_.size()]);
    }
    if (feed_.IsWanted(filled.chunk)) {  // after a failure, buffers only go back
      Status status = CatchOutOfMemory([&] { return Write(filled); });
      if (!status.ok()) feed_.Fail(std::move(status));
    }
    const std::scoped_lock lock(mutex_);
    ++written_;
    changed_.notify_all();
  }
}

// Buffers of huge pages, if the system has them: a direct write of a huge page takes few requests.
Result<std::array<ReservedMemory, 2>> MakeBuffers(const LaneOptions& options) {
  std::array<ReservedMemory, 2> buffers;
  const size_t size = (options.chunk_bytes + PageSize() - 1) / PageSize() * PageSize();
  for (size_t i = 0; i < (options.writer_threads ? 2 : 1); ++i) {
    RESHARD_ASSIGN_OR_RETURN(buffers[i], ReservedMemory::Make(size));
    RESHARD_RETURN_IF_ERROR(buffers[i].Commit(0, size));
  }
  return buffers;
}

}  // namespace

Status WriteParts(SourceFiles& files, const PartWork& work, const PartSink& sink,
                  const LaneOptions& options, WriteCounts& counts, const std::stop_token& stop) {
  if (stop.stop_requested()) return CancelledError("stopped on request");
  ChunkFeed feed(files, work, sink, options, counts);
  std::vector<std::unique_ptr<ChunkLane>> lanes;
  lanes.reserve(options.lanes);
  for (size_t i = 0; i < options.lanes; ++i) {
    RESHARD_ASSIGN_OR_RETURN(auto buffers, MakeBuffers(options));
    lanes.push_back(std::make_unique<ChunkLane>(files, work, feed, counts, std::move(buffers)));
  }
  {
    const std::stop_callback cancel(stop, [&feed] { feed.Cancel(); });
    std::vector<Thread> threads;
    threads.reserve(lanes.size());
    for (size_t i = 1; i < lanes.size(); ++i) {
      auto thread = Thread::Start([lane = lanes[i].get()] { lane->Run(); });
      if (!thread.ok()) break;  // those there are do the same work
      threads.push_back(std::move(*thread));
    }
    lanes[0]->Run();
    for (Thread& thread : threads) thread.Join();
  }
  return feed.TakeFailure();
}

}  // namespace reshard
