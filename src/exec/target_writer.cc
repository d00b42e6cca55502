#include "src/exec/target_writer.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/exec/gather.h"
#include "src/os/thread.h"

namespace reshard {
namespace {

constexpr std::align_val_t kAlignment{StagedFile::kAlignment};

struct FreeAligned {
  void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;

AlignedBytes AllocateAligned(uint64_t size) {
  return AlignedBytes(static_cast<std::byte*>(::operator new(size, kAlignment)));
}

// Two buffers between the thread that fills them and the one that writes them. They go back and
// forth in turns, so counting is all the queue there is: chunk number n is in buffer n % 2.
class ChunkQueue {
 public:
  explicit ChunkQueue(uint64_t chunk_bytes) {
    for (AlignedBytes& buffer : buffers_) buffer = AllocateAligned(chunk_bytes);
  }

  // Waits for a buffer to fill. Returns null after a failure.
  std::byte* WaitForBuffer() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return filled_ - written_ < buffers_.size() || !failure_.ok(); });
    return failure_.ok() ? buffers_[filled_ % buffers_.size()].get() : nullptr;
  }

  // Hands the buffer over, with `size` bytes in it.
  void Push(uint64_t size) {
    const std::scoped_lock lock(mutex_);
    sizes_[filled_++ % buffers_.size()] = size;
    changed_.notify_all();
  }

  // Waits for a chunk to write. Returns an empty one when there will be no more, or after a
  // failure.
  std::span<const std::byte> WaitForChunk() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return filled_ > written_ || closed_ || !failure_.ok(); });
    if (filled_ == written_ || !failure_.ok()) return {};
    const size_t at = written_ % buffers_.size();
    return {buffers_[at].get(), sizes_[at]};
  }

  // Gives the buffer back.
  void Pop() {
    const std::scoped_lock lock(mutex_);
    ++written_;
    changed_.notify_all();
  }

  // Nothing will be pushed any more.
  void Close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

  // Ends both sides; the first failure stays.
  void Fail(Status status) {
    const std::scoped_lock lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    changed_.notify_all();
  }

  // Only when neither side uses the queue any more.
  Status TakeFailure() { return std::move(failure_); }

 private:
  std::array<AlignedBytes, 2> buffers_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::array<uint64_t, 2> sizes_{};
  uint64_t filled_ = 0;
  uint64_t written_ = 0;
  bool closed_ = false;
  Status failure_;
};

void Advance(const std::function<void(uint64_t)>& progress, uint64_t bytes) {
  if (progress) progress(bytes);
}

// Writes chunks until there are no more.
Status Drain(ChunkQueue& queue, StagedFile& out, const std::function<void(uint64_t)>& progress) {
  while (true) {
    const std::span<const std::byte> chunk = queue.WaitForChunk();
    if (chunk.empty()) return {};
    RESHARD_RETURN_IF_ERROR(out.Append(chunk));
    const uint64_t size = chunk.size();
    queue.Pop();
    Advance(progress, size);
  }
}

// Fills `chunk` with the target's bytes from `offset` on; digested here, by the thread that has
// them in its cache, while the other one waits for the disk.
Status FillChunk(SourceFiles& files, const TargetPlan& plan, uint64_t offset,
                 std::span<std::byte> chunk, TargetDigest* digest) {
  RESHARD_RETURN_IF_ERROR(FillTarget(files, plan, offset, chunk, digest));
  if (digest != nullptr) digest->AddChunk(chunk);
  return {};
}

// Fills chunks until the target is complete or the other side has failed.
Status Fill(SourceFiles& files, const TargetPlan& plan, ChunkQueue& queue, TargetDigest* digest,
            const std::stop_token& stop) {
  for (uint64_t offset = 0; offset < plan.size;) {
    if (stop.stop_requested()) return CancelledError("stopped on request");
    std::byte* buffer = queue.WaitForBuffer();
    if (buffer == nullptr) return {};
    const uint64_t size = std::min(kChunkBytes, plan.size - offset);
    RESHARD_RETURN_IF_ERROR(FillChunk(files, plan, offset, {buffer, size}, digest));
    queue.Push(size);
    offset += size;
  }
  queue.Close();
  return {};
}

}  // namespace

Status WriteTarget(SourceFiles& files, const TargetPlan& plan, StagedFile& out,
                   TargetDigest* digest, const std::function<void(uint64_t)>& progress,
                   const std::stop_token& stop) {
  if (plan.size <= kChunkBytes) {  // nothing to do at the same time
    if (stop.stop_requested()) return CancelledError("stopped on request");
    const AlignedBytes buffer = AllocateAligned(plan.size);
    const std::span<std::byte> chunk(buffer.get(), plan.size);
    RESHARD_RETURN_IF_ERROR(FillChunk(files, plan, 0, chunk, digest));
    RESHARD_RETURN_IF_ERROR(out.Append(chunk));
    Advance(progress, plan.size);
    return {};
  }
  ChunkQueue queue(kChunkBytes);
  RESHARD_ASSIGN_OR_RETURN(Thread writer, Thread::Start([&queue, &out, &progress] {
                             Status status =
                                 CatchOutOfMemory([&] { return Drain(queue, out, progress); });
                             if (!status.ok()) queue.Fail(std::move(status));
                           }));
  Status status = CatchOutOfMemory([&] { return Fill(files, plan, queue, digest, stop); });
  if (!status.ok()) queue.Fail(std::move(status));
  writer.Join();
  return queue.TakeFailure();
}

}  // namespace reshard
