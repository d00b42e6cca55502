// TableCache: the indexes of many checkpoint files, made on demand and dropped beyond a budget.
//
// An IndexedFile lives at least as long as a TableHandle to it. Indexes without handles stay until
// all indexes together exceed the budget. Then the least recently used go first; a few always stay.
// Equal tables, as the files of a stage ordinarily have, are held once. Thread-safe: if several
// threads want the same file, one indexes it and the others wait.
#ifndef RESHARD_SRC_SOURCE_TABLE_CACHE_H_
#define RESHARD_SRC_SOURCE_TABLE_CACHE_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/source/indexed_file.h"

namespace reshard {

class TableCache;

// Access to an index, which cannot be dropped meanwhile. Null if made without an index or moved
// from. Move-only. One thread at a time uses a handle. It must not outlive its TableCache.
class TableHandle {
 public:
  TableHandle() = default;
  TableHandle(TableHandle&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)),
        index_(std::exchange(other.index_, nullptr)) {}
  TableHandle& operator=(TableHandle&& other) noexcept;
  ~TableHandle();

  explicit operator bool() const { return index_ != nullptr; }
  const IndexedFile& operator*() const { return *index_; }
  const IndexedFile* operator->() const { return index_; }

 private:
  friend class TableCache;
  TableHandle(TableCache* cache, const IndexedFile* index) : cache_(cache), index_(index) {}

  TableCache* cache_ = nullptr;
  const IndexedFile* index_ = nullptr;
};

class TableCache {
 public:
  // Makes the index of a file; `like`, which may be null, is the table of another one, which the
  // file may have, too.
  using TableMaker =
      std::function<Result<IndexedFile>(FileId, const std::shared_ptr<const FileTable>& like)>;

  // The usual `least_kept`: about as many files as a target file is often put together from.
  static constexpr size_t kUsualLeastKept = 16;

  // Indexes files of `files`, which has to live longer. `budget` is in bytes of memory(). At least
  // `least_kept` indexes stay, for any size: otherwise a caller that alternates between files would
  // make all indexes again for each parameter.
  TableCache(SourceFiles& files, size_t budget, size_t least_kept = 0,
             const MemoryCheck& memory = {})
      : TableCache(
            [&files, memory](FileId file, const std::shared_ptr<const FileTable>& like) {
              return ReadFileTable(files, file, memory, like);
            },
            budget, least_kept) {}
  // As above, with indexes from elsewhere: several threads may call `make` at a time.
  TableCache(TableMaker make, size_t budget, size_t least_kept = 0)
      : make_(std::move(make)), budget_(budget), least_kept_(least_kept) {}
  TableCache(const TableCache&) = delete;
  TableCache& operator=(const TableCache&) = delete;

  // Returns the index of a file, making it when it is not there.
  // Errors: as ReadFileTable. A failure is not kept: the next call, or the next of the
  // threads that wait, tries again.
  Result<TableHandle> Get(FileId file);

  // About the bytes of all indexes that are there, with and without handles; of a table that
  // several have, once.
  size_t memory() const;
  // The bytes of the largest index that there was.
  size_t largest() const;
  // Whether an index went that may have to be made once more.
  bool has_dropped() const;

 private:
  friend class TableHandle;
  class MakeClaim;

  // A table, and the number of entries that refer to it. Node-based: a table stays at its address.
  struct SharedTable {
    std::shared_ptr<const FileTable> table;
    size_t users = 0;
  };
  using Tables = std::multimap<size_t, SharedTable>;  // by hash

  struct Entry {
    IndexedFile index;
    size_t own = 0;                     // bytes of memory without the table
    size_t users = 0;                   // handles
    std::list<FileId>::iterator place;  // in idle_ when there are none, else in used_
    Tables::iterator table;
  };

  void Release(FileId file);
  // These want mutex_ to be held.
  Tables::iterator Intern(IndexedFile& index);
  TableHandle Use(Entry& entry);
  void Evict();

  const TableMaker make_;
  const size_t budget_;
  const size_t least_kept_;
  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::set<FileId> making_;  // files that a thread is indexing
  Tables tables_;
  std::weak_ptr<const FileTable> last_;  // that was made, or found to be another file's
  std::map<FileId, Entry> entries_;      // node-based: an index stays at its address
  // Moving a file between these two does not allocate, because the destructor of a handle cannot
  // report a lack of memory.
  std::list<FileId> idle_;  // indexes without users, least recently used first
  std::list<FileId> used_;
  size_t memory_ = 0;
  size_t largest_ = 0;
  bool has_dropped_ = false;
};

}  // namespace reshard

#endif  // RESHARD_SRC_SOURCE_TABLE_CACHE_H_
