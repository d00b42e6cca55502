// WindowCache: stretches of source files that are kept in memory for a while, for all who read
// them.
//
// A file is divided into windows of kWindowBytes, and these into granules, which become present as
// somebody asks for them and stay until the budget is needed for others: the window not used for
// longest goes first, then those of which only headers were read, the one read last first, so that
// what is left is where reading the contents begins; those with bytes that are read ahead for
// somebody after all others, and of these before anything else what has been used of them, one that
// is pinned never. What goes is unmapped, and those pages that were not in the page cache before
// leave it again; the pages of others stay. Where the kernel does not tell which these are
// (file_pages.h), all pages stay. A page of our own that stays when it is to leave, because the
// kernel is using it for a moment or a process has mapped it, remains our own and is tried again:
// when its window goes the next time, and when the file is closed.
//
// Granules of a file that is not mapped are read into memory, whole ones at a time; their pages
// leave the page cache at once. Threads of the cache read them ahead, a window each at a time; as
// many are under way as there is room for what is read ahead. Of remote files, what is not in the
// page cache is read past it: through it, kernels ask a server for 128 KiB at a time. Where the
// file system has no such reads, or one fails, the page cache serves.
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
  // Keeps up to `budget` bytes, counted in granules, besides what is pinned, and of windows of
  // which only headers were read up to `headers` more.
  explicit WindowCache(uint64_t budget, uint64_t headers = 0)
      : budget_(budget), header_budget_(headers) {}
  // Besides, counts the bytes of pages that are held in `pages`; before any file is opened.
  void CountPagesIn(std::shared_ptr<std::atomic<uint64_t>> pages) { pages_ = std::move(pages); }
  // From now on as many; what is beyond goes when room is made next.
  void SetBudget(uint64_t budget, uint64_t headers);
  // From now on what was read into the page cache stays there when windows go, for other programs
  // and other files that want it.
  void KeepPages() { keeps_pages_ = true; }
  // Gives back all that nobody uses now. The budget is 0 from then on, until it is set again.
  void GiveBack();
  ~WindowCache();
  WindowCache(const WindowCache&) = delete;
  WindowCache& operator=(const WindowCache&) = delete;

  // The most bytes that were held at a time, and those that are now.
  uint64_t HeldPeak() const;
  uint64_t Held() const;
  // The same of pages alone: what is held in buffers is anonymous memory, as others measure it. No
  // lock is taken for those that are now.
  uint64_t PagesPeak() const;
  uint64_t Pages() const { return *pages_; }
  // Those of them now that are of windows of which only headers were read.
  uint64_t HeldForHeaders() const;
  // Those that are anonymous memory: of files that are not mapped.
  uint64_t Buffered() const;
  // The bytes of all granules that were made present, as often as they were.
  uint64_t Filled() const;
  // The most bytes that are read ahead and not used yet.
  uint64_t BytesAhead() const;
  // Whether a file was opened of which windows are read ahead by threads: then it pays to ask for
  // as much ahead as there is room for.
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
    Granules held = 0;      // counted: present, or with pages of our own but for those that stayed
    Granules ahead = 0;     // read ahead, or to be, and not used yet
    Granules wanted = 0;    // of those: no thread has begun to read them
    Granules present = 0;   // in the page cache, for the map to show, or in the buffer
    Granules large = 0;     // are read in large pages, which leave the page cache whole
    GranulePages own{};     // were not in the page cache before, or stayed when they were to leave
    ReservedMemory buffer;  // of kWindowBytes, where the file is not mapped
  };
  using Place = std::list<Entry>::iterator;
  using Lock = std::unique_lock<std::mutex>;

  // Twice the windows that are read ahead within a budget of 64 MiB: some are read in two parts.
  static constexpr size_t kMostReaders = 16;

  // What the threads do that read ahead.
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
  // Takes what is wanted of the entry away from the threads; returns what nobody is at yet.
  Granules TakeWanted(Place entry);
  void Unpin(Place entry);
  // Counts granules that are to be held.
  void Hold(Entry& entry, Granules granules);
  // Those of an entry that are pages; what is in a buffer is none.
  static uint64_t PagesOf(const Entry& entry);
  // Gives the entry a buffer for its window.
  void GiveBuffer(Entry& entry, ReservedMemory buffer);
  void EndReadAhead(Entry& entry, Granules granules);
  // Lets windows go until the budget is kept, those that are awaited last; gives up the lock
  // meanwhile. A buffer of a whole window that goes is kept in `reuse`, unless that is null.
  void MakeRoom(Lock& lock, ReservedMemory* reuse = nullptr);
  // Whether more would be held than is to be kept if `more` bytes were.
  bool IsOver(uint64_t more) const {
    return held_ + more > budget_ + std::min(header_bytes_, header_budget_);
  }
  // Of the budget, the most bytes that are read ahead and not used yet.
  uint64_t MostAhead() const { return budget_ / 4 * 3; }
  // Whether there is a window to let go, and one for which nobody waits.
  bool AnyIdle() const { return AnyUsed() || !awaited_.empty(); }
  bool AnyUsed() const { return !idle_.empty() || header_bytes_ > header_budget_; }
  // Lets a window go, or, of one that is awaited, only what has been used of it, as long as there
  // is such a one: who reads several files side by side is in the midst of a window of each.
  void EvictOldest(Lock& lock, ReservedMemory* reuse = nullptr);
  static Granules UsedOf(const Entry& entry);
  // Whether a window may be held whole before all of it is there. Where fewer fit, those of others
  // would have to go for it.
  bool HasRoomForWhole() const { return budget_ >= 12 * kWindowBytes; }
  // Whether windows that nobody awaits have to go for all of this one to be held.
  bool LacksRoomForWhole(const Entry& entry) const;

  mutable std::mutex mutex_;  // guards what follows, and the entries of each FileWindows
  uint64_t budget_;
  uint64_t header_budget_;
  std::condition_variable changed_;  // granules are no longer busy, or a window went
  std::list<Entry> wanted_;  // with wanted granules, pinned or not; the next one to read first
  std::list<Entry> pinned_;  // the others that are
  // Neither, the one used last at the end: those of which contents were read, those of which only
  // headers were, and those with granules that are read ahead and that nobody has used yet.
  std::list<Entry> idle_;
  std::list<Entry> headers_;
  std::list<Entry> awaited_;
  std::list<Entry> stayed_;  // went, but for pages that stayed; the last one at the end
  uint64_t held_ = 0;
  uint64_t header_bytes_ = 0;  // of those, in headers_
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
