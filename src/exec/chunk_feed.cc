#include "src/exec/chunk_feed.h"

#include <algorithm>
#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"

namespace reshard {
namespace {

constexpr uint64_t kSmallestChunk = uint64_t{256} << 10;

// So many bytes that what all parts of a group read in one step fits half of the windows.
uint64_t ChunkBytes(const LaneOptions& options, size_t parts) {
  const uint64_t share = options.window_bytes / 2 / std::max<size_t>(parts, 1);
  const uint64_t bytes = std::min(options.chunk_bytes, std::max(share, kSmallestChunk));
  return bytes - bytes % StagedFile::kAlignment;
}

}  // namespace

ChunkFeed::ChunkFeed(const PartWork& work, const LaneOptions& options)
    : work_(work), options_(options) {}

ChunkFeed::~ChunkFeed() = default;

TargetPart& ChunkFeed::Chunk::part() const { return *entry_->part; }

bool ChunkFeed::done() const {
  return next_group_ == work_.groups.size() && groups_.empty() && open_.empty();
}

std::optional<ChunkFeed::Chunk> ChunkFeed::Take() {
  std::unique_lock lock(mutex_);
  while (!failed_) {
    if (std::optional<Chunk> chunk = NextChunk()) return chunk;
    if (next_group_ < work_.groups.size()) {
      OpenNext(lock);
    } else if (groups_.empty()) {
      return std::nullopt;
    } else {
      changed_.wait(lock);  // other lanes are opening the last parts
    }
  }
  return std::nullopt;
}

std::optional<ChunkFeed::Chunk> ChunkFeed::NextChunk() {
  for (auto group = groups_.begin(); group != groups_.end();) {
    if (group->missing > 0) {  // they begin together
      ++group;
      continue;
    }
    if (group->entries.empty()) {
      group = groups_.erase(group);
      continue;
    }
    const auto behind = std::min_element(group->entries.begin(), group->entries.end(),
                                         [](const Entry* a, const Entry* b) {
                                           const auto done = [](const Entry* entry) {
                                             return static_cast<double>(entry->next) /
                                                    static_cast<double>(entry->part->range.length);
                                           };
                                           return done(a) < done(b);
                                         });
    Entry* const entry = *behind;
    const ByteRange part = entry->part->range;
    const uint64_t length = std::min(entry->chunk_bytes, part.length - entry->next);
    Chunk chunk;
    chunk.entry_ = entry;
    chunk.number_ = entry->taken++;
    chunk.range_ = {part.offset + entry->next, length};
    entry->next += length;
    // As many chunks later as lanes come back to this part before this one does.
    const uint64_t ahead = (options_.lanes - 1) / group->entries.size();
    const uint64_t later = entry->next + ahead * entry->chunk_bytes;
    if (later < part.length) {
      chunk.later_ = {part.offset + later, std::min(entry->chunk_bytes, part.length - later)};
    }
    if (entry->next == part.length) group->entries.erase(behind);
    return chunk;
  }
  return std::nullopt;
}

void ChunkFeed::OpenNext(std::unique_lock<std::mutex>& lock) {
  const std::vector<size_t>& parts = work_.groups[next_group_];
  if (next_part_ == 0) {
    Group group;
    group.entries.reserve(parts.size());
    group.chunk_bytes = ChunkBytes(options_, parts.size());
    group.missing = parts.size();
    groups_.push_back(std::move(group));
  }
  // A group is erased only when none of its parts is missing.
  Group& group = groups_.back();
  const size_t number = parts[next_part_++];
  if (next_part_ == parts.size()) {
    next_part_ = 0;
    ++next_group_;
  }
  lock.unlock();
  auto entry = CatchOutOfMemory([&] { return Open(number, group.chunk_bytes); });
  if (!entry.ok()) {
    Fail(entry.status());
    lock.lock();
    return;
  }
  lock.lock();
  if (*entry) {
    group.entries.push_back(entry->get());
    Entry* const key = entry->get();
    open_.emplace(key, std::move(*entry));
  }
  --group.missing;
  changed_.notify_all();
}

// Returns null where there is nothing to hand out: a part that is not written, or an empty one.
Result<std::unique_ptr<ChunkFeed::Entry>> ChunkFeed::Open(size_t number, uint64_t chunk_bytes) {
  RESHARD_ASSIGN_OR_RETURN(std::unique_ptr<TargetPart> part, work_.open(number, stop_.get_token()));
  if (part == nullptr) return std::unique_ptr<Entry>();
  if (part->range.length == 0) {
    RESHARD_RETURN_IF_ERROR(work_.finish(number, *part));
    return std::unique_ptr<Entry>();
  }
  auto entry = std::make_unique<Entry>();
  entry->number = number;
  entry->part = std::move(part);
  entry->chunk_bytes = chunk_bytes;
  return entry;
}

bool ChunkFeed::WaitForBaton(const Chunk& chunk) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failed_ || chunk.entry_->digested == chunk.number_; });
  return !failed_;
}

void ChunkFeed::PassBaton(const Chunk& chunk) {
  const std::scoped_lock lock(mutex_);
  ++chunk.entry_->digested;
  changed_.notify_all();
}

void ChunkFeed::Written(const Chunk& chunk) {
  Entry* const entry = chunk.entry_;
  {
    const std::scoped_lock lock(mutex_);
    entry->written += chunk.range_.length;
    if (entry->written < entry->part->range.length) return;
  }
  FinishPart(entry);
}

void ChunkFeed::FinishPart(Entry* entry) {
  Status status = CatchOutOfMemory([&] { return work_.finish(entry->number, *entry->part); });
  if (!status.ok()) return Fail(std::move(status));
  std::unique_ptr<Entry> finished;  // destroyed outside the lock
  const std::scoped_lock lock(mutex_);
  const auto found = open_.find(entry);
  finished = std::move(found->second);
  open_.erase(found);
}

void ChunkFeed::Fail(Status status) {
  {
    const std::scoped_lock lock(mutex_);
    if (failed_) return;
    failed_ = true;
    failure_ = std::move(status);
    changed_.notify_all();
  }
  stop_.request_stop();
}

void ChunkFeed::Cancel() {
  {
    const std::scoped_lock lock(mutex_);
    if (failed_ || done()) return;
    failed_ = true;
    failure_ = std::move(cancelled_);
    changed_.notify_all();
  }
  stop_.request_stop();
}

bool ChunkFeed::failed() const {
  const std::scoped_lock lock(mutex_);
  return failed_;
}

}  // namespace reshard
