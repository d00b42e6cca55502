#include "src/write/stream_file.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/os/file_pages.h"
#include "src/os/memory_usage.h"
#include "src/os/threads.h"
#include "src/write/gather.h"
#include "src/write/target_digest.h"

namespace reshard {
namespace {

// Chunks between the threads that gather them and the one that hands them on. Chunk number n is in
// slot n % slots; a slot is given to the next chunk when its chunk has been taken.
class ChunkRing {
 public:
  ChunkRing(SourceFiles& files, const TargetPlan& plan, ByteRange range,
            const StreamOptions& options, LostInCasts& lost)
      : files_(files),
        plan_(plan),
        range_(range),
        chunk_bytes_(options.chunk_bytes),
        chunks_((range.length + options.chunk_bytes - 1) / options.chunk_bytes),
        digests_(options.digests && range.length == plan.size),
        lost_(lost),
        slots_(std::min<uint64_t>(options.lanes * 2, chunks_)) {
    if (digests_) proof_.emplace(plan);
  }
  ChunkRing(const ChunkRing&) = delete;
  ChunkRing& operator=(const ChunkRing&) = delete;
  ~ChunkRing() { End(); }

  // Starts the threads, which this ends. Errors: kResourceExhausted.
  Status Start(size_t lanes);

  // Calls `take` for each chunk. Errors: as StreamFile.
  Status TakeAll(const std::stop_token& stop, const ChunkTaker& take);

 private:
  struct Slot {
    ReservedMemory buffer;
    ChunkDigest sums;
    bool filled = false;  // guarded by mutex_, as is `status`
    Status status;
  };

  ByteRange RangeOf(uint64_t chunk) const {
    const uint64_t begin = chunk * chunk_bytes_;
    return {range_.offset + begin, std::min(chunk_bytes_, range_.length - begin)};
  }
  std::span<std::byte> BytesIn(const Slot& slot, ByteRange range) const {
    return {slot.buffer.data(), range.length};
  }

  // A thread that gathers chunks until all are gathered, or until no more are wanted.
  void FillAll();
  Status Fill(uint64_t chunk, Slot& slot);
  // Reads ahead the source bytes of a chunk. Filling the chunk reports errors.
  void Prefetch(ByteRange range) const;
  void End();

  SourceFiles& files_;
  const TargetPlan& plan_;
  const ByteRange range_;
  const uint64_t chunk_bytes_;
  const uint64_t chunks_;
  const bool digests_;
  LostInCasts& lost_;
  std::optional<TargetDigest> proof_;  // of the thread that takes

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  uint64_t next_ = 0;   // chunk to be gathered
  uint64_t taken_ = 0;  // chunks
  bool ended_ = false;
  std::vector<Thread> threads_;
};

Status ChunkRing::Start(size_t lanes) {
  const size_t size = (chunk_bytes_ + PageSize() - 1) / PageSize() * PageSize();
  for (Slot& slot : slots_) {
    RESHARD_ASSIGN_OR_RETURN(slot.buffer, ReservedMemory::Make(size));
    RESHARD_RETURN_IF_ERROR(slot.buffer.Commit(0, size));
  }
  if (chunks_ > 0) Prefetch({range_.offset, RangeOf(slots_.size() - 1).end() - range_.offset});
  threads_.reserve(lanes);
  for (size_t i = 0; i < std::min<uint64_t>(lanes, chunks_); ++i) {
    auto thread = Thread::Start([this] { FillAll(); });
    if (!thread.ok() && i == 0) return thread.status();
    if (!thread.ok()) break;  // those there are do the same work
    threads_.push_back(std::move(*thread));
  }
  return {};
}

void ChunkRing::FillAll() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock,
                  [this] { return ended_ || next_ == chunks_ || next_ - taken_ < slots_.size(); });
    if (ended_ || next_ == chunks_) return;
    const uint64_t chunk = next_++;
    Slot& slot = slots_[chunk % slots_.size()];
    lock.unlock();
    Status status = CatchOutOfMemory([&] { return Fill(chunk, slot); });
    lock.lock();
    slot.status = std::move(status);
    slot.filled = true;
    changed_.notify_all();
  }
}

Status ChunkRing::Fill(uint64_t chunk, Slot& slot) {
  if (const uint64_t later = chunk + slots_.size(); later < chunks_) Prefetch(RangeOf(later));
  const ByteRange range = RangeOf(chunk);
  const std::span<std::byte> out = BytesIn(slot, range);
  if (digests_) slot.sums.Begin(plan_, range);
  RESHARD_RETURN_IF_ERROR(
      FillTarget(files_, plan_, range.offset, out, digests_ ? &slot.sums : nullptr, &lost_));
  if (digests_) slot.sums.AddTarget(range.offset, out);
  return {};
}

void ChunkRing::Prefetch(ByteRange range) const {
  const TargetBytes bytes{&plan_, range, range_.end()};
  static_cast<void>(PrefetchTargets(files_, {&bytes, 1}));
}

Status ChunkRing::TakeAll(const std::stop_token& stop, const ChunkTaker& take) {
  const std::stop_callback wake(stop, [this] {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  for (uint64_t chunk = 0; chunk < chunks_; ++chunk) {
    Slot& slot = slots_[chunk % slots_.size()];
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return slot.filled || stop.stop_requested(); });
      if (stop.stop_requested()) return CancelledError("stopped on request");
      RESHARD_RETURN_IF_ERROR(slot.status);
    }
    const ByteRange range = RangeOf(chunk);
    const std::span<std::byte> bytes = BytesIn(slot, range);
    if (proof_) proof_->AddChunk(bytes, slot.sums);
    RESHARD_RETURN_IF_ERROR(take(range.offset, bytes));
    const std::lock_guard lock(mutex_);
    slot.filled = false;
    ++taken_;
    changed_.notify_all();
  }
  return proof_ ? Prove(*proof_, files_) : Status();
}

void ChunkRing::End() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  for (Thread& thread : threads_) thread.Join();
}

}  // namespace

Status StreamFile(SourceFiles& files, const TargetPlan& plan, ByteRange range,
                  const StreamOptions& options, LostInCasts& lost, const ChunkTaker& take) {
  ChunkRing ring(files, plan, range, options, lost);
  RESHARD_RETURN_IF_ERROR(ring.Start(options.lanes));
  return ring.TakeAll(options.stop, take);
}

}  // namespace reshard
