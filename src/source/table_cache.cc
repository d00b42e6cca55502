#include "src/source/table_cache.h"

#include <algorithm>

#include "src/base/status_macros.h"

namespace reshard {

TableHandle& TableHandle::operator=(TableHandle&& other) noexcept {
  if (this == &other) return *this;
  const TableHandle released(std::move(*this));
  cache_ = std::exchange(other.cache_, nullptr);
  index_ = std::exchange(other.index_, nullptr);
  return *this;
}

TableHandle::~TableHandle() {
  if (index_ != nullptr) cache_->Release(index_->file());
}

// The duty to index a file. It ends however Make ends, even by bad_alloc, so that no thread waits
// for ever.
class TableCache::MakeClaim {
 public:
  MakeClaim(TableCache& cache, FileId file) : cache_(cache), file_(file) {}
  MakeClaim(const MakeClaim&) = delete;
  MakeClaim& operator=(const MakeClaim&) = delete;
  ~MakeClaim() {
    const std::lock_guard lock(cache_.mutex_);
    cache_.making_.erase(file_);
    cache_.made_.notify_all();
  }

 private:
  TableCache& cache_;
  const FileId file_;
};

Result<TableHandle> TableCache::Get(FileId file) {
  std::unique_lock lock(mutex_);
  made_.wait(lock, [&] { return !making_.contains(file); });
  if (const auto entry = entries_.find(file); entry != entries_.end()) return Use(entry->second);
  making_.insert(file);
  // Files that are opened one after the other mostly belong to one stage and have equal tables.
  std::shared_ptr<const FileTable> like = last_.lock();
  lock.unlock();

  const MakeClaim claim(*this, file);
  RESHARD_ASSIGN_OR_RETURN(IndexedFile index, make_(file, like));
  like.reset();
  std::list<FileId> place(1, file);
  std::map<FileId, Entry> made;
  const size_t own = index.memory() - index.table().memory();
  Entry& entry =
      made.emplace(file, Entry{std::move(index), own, 0, place.begin(), {}}).first->second;
  const std::lock_guard relock(mutex_);
  entry.table = Intern(entry.index);
  entries_.insert(made.extract(file));
  idle_.splice(idle_.end(), place);
  memory_ += own;
  largest_ = std::max(largest_, own + entry.table->second.table->memory());
  TableHandle handle = Use(entry);
  Evict();
  return handle;
}

TableCache::Tables::iterator TableCache::Intern(IndexedFile& index) {
  const size_t hash = index.table().hash();
  const auto [first, last] = tables_.equal_range(hash);
  auto place = std::find_if(first, last, [&](const auto& entry) {
    return entry.second.table == index.shared_table() || *entry.second.table == index.table();
  });
  if (place == last) {
    place = tables_.emplace(hash, SharedTable());
    place->second.table = index.shared_table();
    memory_ += place->second.table->memory();
  } else {
    index.Share(place->second.table);
  }
  last_ = place->second.table;
  ++place->second.users;
  return place;
}

size_t TableCache::largest() const {
  const std::lock_guard lock(mutex_);
  return largest_;
}

bool TableCache::has_dropped() const {
  const std::lock_guard lock(mutex_);
  return has_dropped_;
}

size_t TableCache::memory() const {
  const std::lock_guard lock(mutex_);
  return memory_;
}

TableHandle TableCache::Use(Entry& entry) {
  if (entry.users++ == 0) used_.splice(used_.end(), idle_, entry.place);
  return TableHandle(this, &entry.index);
}

void TableCache::Release(FileId file) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.find(file)->second;
  if (--entry.users > 0) return;
  idle_.splice(idle_.end(), used_, entry.place);
  Evict();
}

void TableCache::Evict() {
  while (memory_ > budget_ && entries_.size() > least_kept_ && !idle_.empty()) {
    const auto entry = entries_.find(idle_.front());
    idle_.pop_front();
    has_dropped_ = true;
    const Tables::iterator table = entry->second.table;
    memory_ -= entry->second.own;
    entries_.erase(entry);
    if (--table->second.users > 0) continue;
    memory_ -= table->second.table->memory();
    tables_.erase(table);
  }
}

}  // namespace reshard
