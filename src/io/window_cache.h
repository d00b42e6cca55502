// WindowCache: keeps parts of source files in memory for a while, for all their readers.
//
// A file is divided into windows of kWindowBytes, and a window into granules. Granules become
// present when a reader asks for them, and stay until the budget is needed for others. Eviction
// order:
//
// 1. used windows, the least recently used first
// 2. windows that only headers were read from, the most recently used first, so that the remaining
//    ones are where reading the contents begins
// 3. windows with bytes that are read ahead, first their used granules
//
// A pinned window is never evicted. Evicted granules are unmapped, and their pages leave the page
// cache unless they were in it before. If the kernel does not tell these pages apart
// (file_pages.h), all pages stay. If the kernel is using one of our own pages, or a process has
// mapped it, the page stays. It remains our own and is tried again at its window's next eviction
// and when the file is closed.
//
// Files that are not mapped are read into memory, in whole granules, and their pages leave the page
// cache at once. Threads of the cache read ahead, a window each at a time. Their number is limited
// by the room for reading ahead. Uncached bytes of remote files are read past the page cache,
// because kernels ask a server for just 128 KiB at a time through it. If the file system lacks such
// reads, or one fails, the page cache serves.
//
// Thread-safe: the kernel is called outside the lock.
#ifndef RESHARD_SRC_IO_WINDOW_CACHE_H_
#define RESHARD_SRC_IO_WINDOW_CACHE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "src/os/memory_usage.h"
#include "src/os/threads.h"

namespace reshard {

// Windows begin at multiples of this.
inline constexpr uint64_t kWindowBytes = uint64_t{4} << 20;

inline constexpr uint64_t kGranuleBytes = uint64_t{64} << 10;

// Granules of a window, a bit each.
using Granules = uint64_t;
static_assert(kWindowBytes / kGranuleBytes == 64);

// Pages of each granule, a bit for 4096 bytes; no page is smaller.
using GranulePages = std::array<uint16_t, 64>;

class FileWindows;

class WindowCache {
 public:
  // Keeps up to `budget` bytes, counted in granules, besides pinned windows. Keeps up to `headers`
  // more bytes for windows that only headers were read from.
  explicit WindowCache(uint64_t budget, uint64_t headers = 0)
      : budget_(budget), header_budget_(headers) {}
  // Also counts the bytes of held pages in `pages`. Call it before a file is opened.
  void CountPagesIn(std::shared_ptr<std::atomic<uint64_t>> pages) { pages_ = std::move(pages); }
  // Sets the limits for the future. A present excess goes when room is made next.
  void SetBudget(uint64_t budget, uint64_t headers);
  // From now on, pages that were read into the page cache stay there when their windows go, for
  // other programs and other files.
  void KeepPages() { keeps_pages_ = true; }
  // Gives back all windows without a user. The budget is 0 until it is set again.
  void GiveBack();
  ~WindowCache();
  WindowCache(const WindowCache&) = delete;
  WindowCache& operator=(const WindowCache&) = delete;

  // The most bytes that were held at a time, and the bytes held now.
  uint64_t HeldPeak() const;
  uint64_t Held() const;
  // The same of pages alone, because buffers are anonymous memory, which is measured elsewhere.
  // Pages() takes no lock.
  uint64_t PagesPeak() const;
  uint64_t Pages() const { return *pages_; }
  // The part of Held() in windows that only headers were read from.
  uint64_t HeldForHeaders() const;
  // The part of Held() that is anonymous memory: files that are not mapped.
  uint64_t Buffered() const;
  // The bytes of all granules that were made present, as often as they were.
  uint64_t Filled() const;
  // The most bytes that are read ahead and not used yet.
  uint64_t BytesAhead() const;
  // Whether a file was opened whose windows threads read ahead. Then it pays to ask for as much
  // ahead as there is room for.
  bool HasReadFiles() const { return has_read_files_; }

 private:
  friend class FileWindows;

  struct Entry {
    FileWindows* file = nullptr;
    uint64_t number = 0;  // it begins at `number` * kWindowBytes
    size_t pins = 0;
    bool is_read = false;   // contents were, not only headers
    Granules busy = 0;      // a thread is at them, outside the lock
    Granules asked = 0;     // it is known which of their pages are `own`
    Granules held = 0;      // counted: present, or with pages of our own, except pages that stayed
    Granules ahead = 0;     // read ahead, or to be, and not used yet
    Granules wanted = 0;    // of `ahead`: no thread has begun to read them
    Granules present = 0;   // in the page cache, for the map to show, or in the buffer
    Granules large = 0;     // are read in large pages, which leave the page cache whole
    GranulePages own{};     // were not in the page cache before, or stayed when they were to leave
    ReservedMemory buffer;  // of kWindowBytes, if the file is not mapped
  };
  using Place = std::list<Entry>::iterator;
  using Lock = std::unique_lock<std::mutex>;

  // Twice the windows that are read ahead within a budget of 64 MiB: some are read in two parts.
  static constexpr size_t kMostReaders = 16;

  // The loop of a thread that reads ahead.
  void ReadWanted();

  // With the lock held:
  // Returns the list in which the entry is.
  std::list<Entry>& ListOf(const Entry& entry);
  // Moves an entry between lists.
  void Splice(std::list<Entry>& to, std::list<Entry>& from, Place entry);
  // Calls change(), after which the entry may belong into another list, and moves it there.
  template <typename Change>
  void Move(Place entry, const Change& change);
  // Returns the entry to be read ahead next.
  Place NextWanted();
  // Has a thread make granules of the entry present as soon as one is free.
  void Want(Place entry, Granules granules);
  // Takes the wanted granules of the entry away from the threads. Returns those that no thread
  // reads yet.
  Granules TakeWanted(Place entry);
  void Unpin(Place entry);
  // Counts granules that are to be held.
  void Hold(Entry& entry, Granules granules);
  // The bytes of an entry in pages. A buffer has none.
  static uint64_t PagesOf(const Entry& entry);
  // Gives the entry a buffer for its window.
  void GiveBuffer(Entry& entry, ReservedMemory buffer);
  void EndReadAhead(Entry& entry, Granules granules);
  // Evicts windows until the budget is kept, awaited ones last. Releases the lock meanwhile. Keeps
  // the buffer of an evicted whole window in `reuse`, unless that is null.
  void MakeRoom(Lock& lock, ReservedMemory* reuse = nullptr);
  // Whether more would be held than is to be kept if `more` bytes were.
  bool IsOver(uint64_t more) const {
    return held_ + more > budget_ + std::min(header_bytes_, header_budget_);
  }
  // Of the budget, the most bytes that are read ahead and not used yet.
  uint64_t MostAhead() const { return budget_ / 4 * 3; }
  // Whether there is a window to evict, and whether there is one that no thread waits for.
  bool AnyIdle() const { return AnyUsed() || !awaited_.empty(); }
  bool AnyUsed() const { return !idle_.empty() || header_bytes_ > header_budget_; }
  // Evicts a window. Of an awaited window, evicts only the used granules, as long as such a window
  // exists: a reader of several files side by side is in the middle of a window of each.
  void EvictOldest(Lock& lock, ReservedMemory* reuse = nullptr);
  static Granules UsedOf(const Entry& entry);
  // Whether a window may be held whole before all its bytes are there. If fewer windows fit, others
  // would be evicted for it.
  bool HasRoomForWhole() const { return budget_ >= 12 * kWindowBytes; }
  // Whether windows that no thread waits for have to be evicted to hold all of this one.
  bool LacksRoomForWhole(const Entry& entry) const;

  mutable std::mutex mutex_;  // guards the members below, and the entries of each FileWindows
  uint64_t budget_;
  uint64_t header_budget_;
  std::condition_variable changed_;  // granules are no longer busy, or a window went
  std::list<Entry> wanted_;  // with wanted granules, pinned or not; the next one to read first
  std::list<Entry> pinned_;  // the others that are
  // Windows that are not pinned, the most recently used at the end. They are in three lists:
  // windows whose contents were read, windows that only headers were read from, and windows with
  // unused granules that were read ahead.
  std::list<Entry> idle_;
  std::list<Entry> headers_;
  std::list<Entry> awaited_;
  std::list<Entry> stayed_;  // gone windows with pages that stayed; the last one at the end
  uint64_t held_ = 0;
  uint64_t header_bytes_ = 0;  // of the windows in headers_
  uint64_t held_peak_ = 0;
  uint64_t pages_peak_ = 0;
  uint64_t filled_ = 0;
  uint64_t ahead_ = 0;  // read ahead, or to be, and not used yet
  size_t evicting_ = 0;
  size_t reading_ = 0;                 // threads that are reading ahead, outside the lock
  std::condition_variable is_wanted_;  // an entry with wanted granules came, or the threads end
  size_t idle_readers_ = 0;
  bool closing_ = false;
  std::array<std::optional<Thread>, kMostReaders> readers_;
  std::atomic<bool> has_read_files_ = false;
  std::atomic<bool> keeps_pages_ = false;
  // Changed with the lock held.
  std::shared_ptr<std::atomic<uint64_t>> pages_ = std::make_shared<std::atomic<uint64_t>>(0);
};

template <typename Change>
void WindowCache::Move(Place entry, const Change& change) {
  std::list<Entry>& from = ListOf(*entry);
  change();
  std::list<Entry>& to = ListOf(*entry);
  if (&from != &to) Splice(to, from, entry);
}

}  // namespace reshard

#endif  // RESHARD_SRC_IO_WINDOW_CACHE_H_
