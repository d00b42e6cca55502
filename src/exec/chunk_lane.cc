#include "src/exec/chunk_lane.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/exec/gather.h"
#include "src/os/thread.h"

namespace reshard {

ChunkLane::ChunkLane(SourceFiles& files, const PartWork& work, ChunkFeed& feed,
                     const LaneOptions& options)
    : files_(files), work_(work), feed_(feed) {
  for (size_t i = 0; i < (options.writer_threads ? 2 : 1); ++i) {
    buffers_[i].reset(static_cast<std::byte*>(
        ::operator new (options.chunk_bytes, std::align_val_t{StagedFile::kAlignment})));
  }
}

void ChunkLane::Run() {
  std::optional<Thread> writer;
  Status status = CatchOutOfMemory([&]() -> Status {
    if (buffers_[1] == nullptr) return {};
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
  for (uint64_t number = 0;; ++number) {
    const size_t at = hand_over ? number % buffers_.size() : 0;
    if (hand_over) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return handed_over_ - written_ < buffers_.size(); });
    }
    const std::optional<ChunkFeed::Chunk> chunk = feed_.Take();
    if (!chunk) return {};
    const std::span<std::byte> out(buffers_[at].get(), chunk->range().length);
    RESHARD_ASSIGN_OR_RETURN(const bool useful, Fill(*chunk, out));
    if (!useful) return {};
    if (work_.gathered) work_.gathered(out.size());
    if (!hand_over) {
      RESHARD_RETURN_IF_ERROR(Write({*chunk, out}));
      continue;
    }
    const std::scoped_lock lock(mutex_);
    filled_[at] = {*chunk, out};
    ++handed_over_;
    changed_.notify_all();
  }
}

Result<bool> ChunkLane::Fill(const ChunkFeed::Chunk& chunk, std::span<std::byte> out) {
  TargetPart& part = chunk.part();
  const uint64_t offset = chunk.range().offset;
  if (chunk.later().length > 0) {  // the disk reads it while this one is dealt with
    RESHARD_RETURN_IF_ERROR(PrefetchTarget(files_, part.plan, chunk.later()));
  }
  if (!part.digest) {
    RESHARD_RETURN_IF_ERROR(FillTarget(files_, part.plan, offset, out, nullptr));
    return true;
  }
  // Digested here, by the thread that has the bytes in its cache, while the other one waits for the
  // disk.
  sums_.Begin(part.plan, chunk.range());
  RESHARD_RETURN_IF_ERROR(FillTarget(files_, part.plan, offset, out, &sums_));
  sums_.AddTarget(offset, out);
  if (!feed_.WaitForBaton(chunk)) return false;
  part.digest->AddChunk(out, sums_);
  feed_.PassBaton(chunk);
  return true;
}

Status ChunkLane::Write(const Filled& filled) {
  RESHARD_RETURN_IF_ERROR(
      filled.chunk.part().file.WriteAt(filled.chunk.range().offset, filled.bytes));
  if (work_.progress) work_.progress(filled.bytes.size());
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
      filled = filled_[written_ % buffers_.size()];
    }
    if (!feed_.failed()) {  // after a failure, buffers only go back
      Status status = CatchOutOfMemory([&] { return Write(filled); });
      if (!status.ok()) feed_.Fail(std::move(status));
    }
    const std::scoped_lock lock(mutex_);
    ++written_;
    changed_.notify_all();
  }
}

}  // namespace reshard
