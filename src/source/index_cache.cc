#include "src/source/index_cache.h"

#include <algorithm>

#include "src/base/status_macros.h"

namespace reshard {

IndexHandle& IndexHandle::operator=(IndexHandle&& other) noexcept {
  if (this == &other) return *this;
  const IndexHandle released(std::move(*this));
  cache_ = std::exchange(other.cache_, nullptr);
  index_ = std::exchange(other.index_, nullptr);
  return *this;
}

IndexHandle::~IndexHandle() {
  if (index_ != nullptr) cache_->Release(index_->file());
}

// The duty to index a file. It ends however Make ends, by bad_alloc too, so that nobody waits for
// ever.
class IndexCache::MakeClaim {
 public:
  MakeClaim(IndexCache& cache, FileId file) : cache_(cache), file_(file) {}
  MakeClaim(const MakeClaim&) = delete;
  MakeClaim& operator=(const MakeClaim&) = delete;
  ~MakeClaim() {
    const std::lock_guard lock(cache_.mutex_);
    cache_.making_.erase(file_);
    cache_.made_.notify_all();
  }

 private:
  IndexCache& cache_;
  const FileId file_;
};

Result<IndexHandle> IndexCache::Get(FileId file) {
  std::unique_lock lock(mutex_);
  made_.wait(lock, [&] { return !making_.contains(file); });
  if (const auto entry = entries_.find(file); entry != entries_.end()) return Use(entry->second);
  making_.insert(file);
  lock.unlock();

  const MakeClaim claim(*this, file);
  RESHARD_ASSIGN_OR_RETURN(CheckpointIndex index, make_(file));
  const size_t hash = index.table().Hash();
  std::list<FileId> place(1, file);
  std::map<FileId, Entry> made;
  Entry& entry = made.emplace(file, Entry{std::move(index), 0, place.begin(), {}}).first->second;
  const std::lock_guard relock(mutex_);
  entry.table = Intern(entry.index, hash);
  entries_.insert(made.extract(file));
  idle_.splice(idle_.end(), place);
  memory_ += sizeof(CheckpointIndex);
  IndexHandle handle = Use(entry);
  Evict();
  memory_peak_ = std::max(memory_peak_, memory_);
  return handle;
}

IndexCache::Tables::iterator IndexCache::Intern(CheckpointIndex& index, size_t hash) {
  const auto [first, last] = tables_.equal_range(hash);
  auto place = std::find_if(
      first, last, [&](const auto& entry) { return *entry.second.table == index.table(); });
  if (place == last) {
    place = tables_.emplace(hash, SharedTable());
    place->second.table = index.Share(&index.table());
    const size_t bytes = place->second.table->memory();
    memory_ += bytes;
    largest_ = std::max(largest_, bytes);
  } else {
    index.Share(place->second.table.get());
  }
  ++place->second.users;
  return place;
}

size_t IndexCache::memory_peak() const {
  const std::lock_guard lock(mutex_);
  return memory_peak_;
}

size_t IndexCache::largest() const {
  const std::lock_guard lock(mutex_);
  return largest_;
}

size_t IndexCache::memory() const {
  const std::lock_guard lock(mutex_);
  return memory_;
}

IndexHandle IndexCache::Use(Entry& entry) {
  if (entry.users++ == 0) used_.splice(used_.end(), idle_, entry.place);
  return IndexHandle(this, &entry.index);
}

void IndexCache::Release(FileId file) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.find(file)->second;
  if (--entry.users > 0) return;
  idle_.splice(idle_.end(), used_, entry.place);
  Evict();
}

void IndexCache::Evict() {
  while (memory_ > budget_ && entries_.size() > least_kept_ && !idle_.empty()) {
    const auto entry = entries_.find(idle_.front());
    idle_.pop_front();
    const Tables::iterator table = entry->second.table;
    entries_.erase(entry);
    memory_ -= sizeof(CheckpointIndex);
    if (--table->second.users > 0) continue;
    memory_ -= table->second.table->memory();
    tables_.erase(table);
  }
}

}  // namespace reshard
