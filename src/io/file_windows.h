// FileWindows: the windows of an open file in a WindowCache. Makes granules present, and lets them
// go again.
//
// Thread-safe: the kernel is called outside the cache's lock.
#ifndef RESHARD_SRC_IO_FILE_WINDOWS_H_
#define RESHARD_SRC_IO_FILE_WINDOWS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/window_cache.h"
#include "src/os/byte_source.h"
#include "src/os/memory_usage.h"
#include "src/os/system_call.h"

namespace reshard {

// Cannot be moved or copied. WindowCache and file outlive it.
class FileWindows {
 public:
  // Keeps a window. Move-only.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), entry_(other.entry_) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Pin() {
      if (owner_ != nullptr) owner_->Unpin(entry_);
    }

    // The window's byte at `offset` of the file, which is present; read under Guarded(), as a page
    // may have left the page cache and not be had again.
    const std::byte* At(uint64_t offset) const {
      const std::byte* const map = owner_->map_;
      return map != nullptr ? map + offset : entry_->buffer.data() + offset % kWindowBytes;
    }

   private:
    friend class FileWindows;
    Pin(FileWindows* owner, WindowCache::Place entry) : owner_(owner), entry_(entry) {}

    FileWindows* owner_ = nullptr;
    WindowCache::Place entry_;
  };

  // Reads the file if it is not mapped.
  FileWindows(WindowCache& cache, const ByteSource& source);
  // Lets all windows go. No window may be pinned.
  ~FileWindows();
  FileWindows(const FileWindows&) = delete;
  FileWindows& operator=(const FileWindows&) = delete;

  // The first byte of the file's map; null: windows are read into buffers.
  const std::byte* map() const { return map_; }

  // In all functions below, `range` is not empty and lies in the file.

  // Makes the bytes of `range` present, which lies within one window, and keeps them so.
  // Errors: kChanged; kIo; kResourceExhausted.
  Result<Pin> Hold(ByteRange range);

  // Copies the bytes of `range`, which lies within a window, in the way that suits headers: touches
  // their pages only. Pages that it brings into the page cache stay as long as there is room. It
  // never uses pread in a large page, because a pread at its begin makes the kernel read on behind
  // it. So no thread reads a large page in meanwhile. For a source without pages on a server, holds
  // the window instead.
  // Errors: kChanged; kIo; kResourceExhausted.
  Status Read(ByteRange range, std::span<std::byte> destination);

  // Starts to read ahead for a later Hold, unless three quarters of the budget are in use for that.
  void Prefetch(ByteRange range);
  // As above, for a later Read: into the page cache, or to the place where headers are kept.
  void PrefetchPages(ByteRange range);
  // The same for a header of a mapped file that lies far from others: its pages, and no granules.
  void PrefetchHeader(ByteRange range);

 private:
  friend class WindowCache;
  using Entry = WindowCache::Entry;
  using Lock = WindowCache::Lock;
  using Place = WindowCache::Place;

  // With the lock held:
  Place PinEntry(uint64_t number);
  // These release the lock while they work at `granules`, which must not be busy. Fill makes them
  // present; ReadAhead starts to read those that are not in the page cache.
  Status Fill(Lock& lock, Entry& entry, Granules granules);
  // Finds out which of their pages are not in the page cache, unless this is known.
  void FindOwn(Lock& lock, Entry& entry, Granules granules);
  // Whether the buffer of a window that goes is to be taken for these.
  bool IsWorthReuse(const Entry& entry, Granules granules) const;
  // Gives the entry `reuse`, if it wants a buffer and this is one.
  void ReuseBuffer(Entry& entry, ReservedMemory reuse);
  Status ReserveBuffer(Lock& lock, Entry& entry);
  void ReadAhead(Lock& lock, Place entry, Granules granules);
  // Ends a thread's work at granules. It found that the pages `own` are our own.
  void EndWork(Entry& entry, Granules granules, const GranulePages& own);
  // Returns the subset of `granules` that Populate reads in large pages. All `granules` are to be
  // read.
  Granules LargePagesOf(Granules granules, const GranulePages& own) const;
  // Takes small pages in these large pages out of the page cache, so that the kernel can read each
  // one as a whole. A read of headers in the granules `touched` brought them in.
  void MakeRoomForLargePages(uint64_t number, Granules large, Granules touched) const;
  // Returns the known facts about the granules' pages.
  static GranulePages Known(const Entry& entry, Granules granules);

  // Without the lock:
  void Unpin(Place entry);
  // Copies bytes. Granules in `mapped` come from the map.
  Status Copy(ByteRange range, Granules mapped, const Pin& pin,
              std::span<std::byte> destination) const;
  // Finds the pages that are not in the page cache. Returns the granules that may have such pages.
  Granules FindOwn(uint64_t number, Granules granules, GranulePages& own) const;
  void StartReading(uint64_t number, Granules granules) const;
  Status Populate(uint64_t number, Granules granules) const;
  Status ReadInto(ReservedMemory& buffer, uint64_t number, Granules granules) const;
  // Reads a subset of `granules` past the page cache, if that takes fewer requests. It may include
  // a few of the granules `between` them, because two answers would be waited for in turn. Returns
  // this subset.
  Granules ReadPastCache(ReservedMemory& buffer, uint64_t number, Granules granules,
                         Granules between);
  // Requests the bytes ahead, window by window, without granules that are in `already`; ask(lock,
  // entry, granules) makes the request.
  template <typename Ask>
  void AskAhead(ByteRange range, Granules Entry::*already, const Ask& ask);
  // Unmaps the granules, and takes the pages `own` out of the page cache. Returns the pages that
  // stayed, as far as the kernel tells.
  GranulePages Drop(uint64_t number, Granules granules, const GranulePages& own) const;

  WindowCache& cache_;
  const ByteSource& source_;
  const LocalFile* const pages_;  // null if the source has none
  const std::byte* const map_;    // null: it is read
  const bool is_remote_;          // and read
  const bool reads_large_pages_;
  // Whether headers, too, are read by windows. True if each read waits for a server, as only
  // windows keep the bytes.
  const bool keeps_headers_;
  std::once_flag opening_past_cache_;
  FileDescriptor past_cache_;                    // once it was wanted; may own no descriptor
  std::atomic<bool> past_cache_failed_ = false;  // it is not to be used any more
  std::unordered_map<uint64_t, Place> entries_;  // by number
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_FILE_WINDOWS_H_
