#include "src/io/file_windows.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iterator>
#include <list>
#include <optional>
#include <thread>

#include "src/base/memory_watch.h"
#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/io/granules.h"
#include "src/os/fault_guard.h"
#include "src/os/file_pages.h"
#include "src/os/local_file.h"

namespace reshard {
namespace {

// Usually enough for the kernel to be done with a page that it looks at for reclaim.
constexpr std::chrono::milliseconds kRetryAfter{1};

// Fills of this many bytes or more reuse the buffer of an evicted window with its pages, which the
// kernel would otherwise clear. They count as a whole window. Smaller fills do the same if the
// window before holds as much, because then a sequential reader has just begun this window.
constexpr uint64_t kWorthReuse = uint64_t{1} << 20;

// `range` without the bytes beyond the file's last page.
ByteRange Clip(ByteRange range, const ByteSource& source) {
  const uint64_t page = PageSize();
  const uint64_t end = (source.size() + page - 1) / page * page;
  return {range.offset, std::min(range.length, end - std::min(end, range.offset))};
}

}  // namespace

FileWindows::FileWindows(WindowCache& cache, const ByteSource& source)
    : cache_(cache),
      source_(source),
      pages_(source.pages()),
      map_(pages_ == nullptr ? nullptr : pages_->map()),
      is_remote_(map_ == nullptr && source.IsRemote()),
      reads_large_pages_(map_ != nullptr && pages_->ReadsLargePages()),
      keeps_headers_(pages_ == nullptr && is_remote_ && source.decryption() == Decryption::kNone) {
  if (map_ == nullptr && source.size() > 0) cache_.has_read_files_ = true;
}

FileWindows::~FileWindows() {
  Lock lock(cache_.mutex_);
  for (const auto& [number, entry] : entries_) {
    cache_.Move(entry, [wanted = entry] { wanted->wanted = 0; });
  }
  // Other threads may still be letting some windows go, or reading ahead.
  cache_.changed_.wait(lock, [this] {
    return std::all_of(entries_.begin(), entries_.end(),
                       [](const auto& entry) { return entry.second->pins == 0; });
  });
  std::list<Entry> gone;
  for (const auto& [number, entry] : entries_) {
    cache_.Splice(gone, cache_.ListOf(*entry), entry);
  }
  lock.unlock();
  uint64_t held = 0;
  uint64_t held_pages = 0;
  bool any_stayed = false;
  for (Entry& entry : gone) {
    held_pages += WindowCache::PagesOf(entry);
    entry.own = Drop(entry.number, entry.held, entry.own);
    entry.buffer = ReservedMemory();
    held += BytesIn(entry.held);
    any_stayed = any_stayed || AnyPage(entry.own);
  }
  lock.lock();
  cache_.held_ -= held;
  *cache_.pages_ -= held_pages;
  for (Entry& entry : gone) cache_.EndReadAhead(entry, entry.ahead);
  lock.unlock();
  if (!any_stayed) return;
  std::this_thread::sleep_for(kRetryAfter);
  for (const Entry& entry : gone) Drop(entry.number, 0, entry.own);
}

Result<FileWindows::Pin> FileWindows::Hold(ByteRange range) {
  const Granules wanted = GranulesOf(range);
  Lock lock(cache_.mutex_);
  const Place entry = PinEntry(range.offset / kWindowBytes);
  entry->is_read = true;
  Status status;
  for (Granules missing; status.ok() && (missing = wanted & ~entry->present) != 0;) {
    Granules todo = missing & ~entry->busy;
    // This is sooner than a busy reader thread, and reads all granules at once.
    if ((todo & entry->wanted) != 0) todo |= cache_.TakeWanted(entry);
    if (todo != 0) {
      status = Fill(lock, *entry, todo);
    } else {
      cache_.changed_.wait(lock);
    }
  }
  cache_.EndReadAhead(*entry, wanted);
  lock.unlock();
  Pin pin(this, entry);
  // Unneeded bytes beside the range may be the cause.
  if (map_ != nullptr && !status.ok() && status.code() != StatusCode::kResourceExhausted) {
    status = pages_->Populate(range);
  }
  if (!status.ok()) return status;
  return pin;
}

Status FileWindows::Read(ByteRange range, std::span<std::byte> destination) {
  if (keeps_headers_) {
    RESHARD_ASSIGN_OR_RETURN(const Pin held, Hold(range));
    std::memcpy(destination.data(), held.At(range.offset), range.length);
    return {};
  }
  const Granules wanted = GranulesOf(range);
  Pin pin;  // goes without the lock
  Lock lock(cache_.mutex_);
  const Place entry = PinEntry(range.offset / kWindowBytes);
  pin = Pin(this, entry);
  // This is sooner than a busy reader thread. A later read of the bytes reports errors.
  if (map_ != nullptr && (wanted & entry->wanted) != 0) {
    static_cast<void>(Fill(lock, *entry, cache_.TakeWanted(entry)));
  }
  const Granules undisturbed = reads_large_pages_ ? wanted : 0;
  for (Granules unasked;
       (unasked = wanted & ~entry->asked) != 0 || (undisturbed & entry->busy) != 0;) {
    const Granules todo = unasked & ~entry->busy;
    if (todo == 0) {
      cache_.changed_.wait(lock);
      continue;
    }
    FindOwn(lock, *entry, todo);
  }
  cache_.EndReadAhead(*entry, wanted);
  const Granules mapped = wanted & entry->present & entry->large;
  entry->busy |= undisturbed;
  lock.unlock();
  Status status = CatchOutOfMemory([&] { return Copy(range, mapped, pin, destination); });
  if (undisturbed != 0) {
    lock.lock();
    entry->busy &= ~undisturbed;
    cache_.changed_.notify_all();
    lock.unlock();
  }
  return status;
}

Status FileWindows::Copy(ByteRange range, Granules mapped, const Pin& pin,
                         std::span<std::byte> destination) const {
  while (range.length > 0) {
    // The first bytes, up to a border between mapped and unmapped ones.
    const Granules granules = GranulesOf(range);
    const bool is_mapped = (mapped >> std::countr_zero(granules) & 1) != 0;
    const Granules others = granules & (is_mapped ? ~mapped : mapped);
    const uint64_t window = range.offset / kWindowBytes * kWindowBytes;
    const uint64_t end =
        others == 0 ? range.end()
                    : window + static_cast<uint64_t>(std::countr_zero(others)) * kGranuleBytes;
    const std::span<std::byte> out = destination.first(end - range.offset);
    if (is_mapped) {
      const std::byte* const data = pin.At(range.offset);
      const std::optional<size_t> fault =
          Guarded(data, out.size(), [out, data] { std::memcpy(out.data(), data, out.size()); });
      if (fault) return pages_->ExplainFault(range.offset + *fault);
    } else {
      // By pread, even if the file is mapped. The kernel copies the same pages. If the file has
      // shrunk, it reports the exact end, while a map reads zeros to the end of the page.
      RESHARD_RETURN_IF_ERROR(source_.ReadAt(range.offset, out));
    }
    range = {end, range.end() - end};
    destination = destination.subspan(out.size());
  }
  return {};
}

void FileWindows::Prefetch(ByteRange range) {
  if (map_ != nullptr) return PrefetchPages(range);
  // The bytes are cached, so there is no wait for a disk. The reader copies them as fast as the
  // threads, which would only take processors away from each other.
  if (!is_remote_ && source_.IsCached(range)) return;
  // A granule whose pages were read ahead for a header is not in the buffer yet.
  AskAhead(range, &Entry::wanted, [this](Lock& /*lock*/, Place entry, Granules granules) {
    cache_.Want(entry, granules);
  });
}

void FileWindows::PrefetchPages(ByteRange range) {
  if (keeps_headers_) return Prefetch(range);
  if (pages_ == nullptr) return source_.Prefetch(range);
  AskAhead(range, &Entry::ahead, [this](Lock& lock, Place entry, Granules granules) {
    ReadAhead(lock, entry, granules);
  });
}

void FileWindows::PrefetchHeader(ByteRange range) {
  const Granules wanted = GranulesOf(range);
  Pin pin;  // until it is asked for: a window that goes takes its pages along
  Lock lock(cache_.mutex_);
  if (cache_.ahead_ + kGranuleBytes > cache_.MostAhead()) return;
  const Place entry = PinEntry(range.offset / kWindowBytes);
  pin = Pin(this, entry);
  FindOwn(lock, *entry, wanted & ~entry->asked & ~entry->busy);
  const bool is_cached = AnyOf(wanted, entry->own) == 0;
  lock.unlock();
  if (!is_cached) source_.Prefetch(range);
}

template <typename Ask>
void FileWindows::AskAhead(ByteRange range, Granules Entry::*already, const Ask& ask) {
  while (range.length > 0) {
    const uint64_t length = std::min(range.length, kWindowBytes - range.offset % kWindowBytes);
    Lock lock(cache_.mutex_);
    const uint64_t most = cache_.MostAhead();
    const uint64_t room = (most - std::min(most, cache_.ahead_)) / kGranuleBytes;
    if (room == 0) return;
    const Place entry = PinEntry(range.offset / kWindowBytes);
    const Granules todo = Lowest(
        GranulesOf({range.offset, length}) & ~entry->present & ~entry->busy & ~((*entry).*already),
        room);
    if (todo != 0) ask(lock, entry, todo);
    cache_.Unpin(entry);
    range = {range.offset + length, range.length - length};
  }
}

FileWindows::Place FileWindows::PinEntry(uint64_t number) {
  if (const auto found = entries_.find(number); found != entries_.end()) {
    const Place entry = found->second;
    cache_.Move(entry, [&] { ++entry->pins; });
    return entry;
  }
  std::list<Entry> made(1);
  made.front().file = this;
  made.front().number = number;
  made.front().pins = 1;
  entries_.emplace(number, made.begin());
  cache_.pinned_.splice(cache_.pinned_.end(), made);
  return std::prev(cache_.pinned_.end());
}

void FileWindows::Unpin(Place entry) {
  Lock lock(cache_.mutex_);
  cache_.Unpin(entry);
  cache_.MakeRoom(lock);
}

Status FileWindows::Fill(Lock& lock, Entry& entry, Granules granules) {
  entry.busy |= granules;
  cache_.Hold(entry, granules);
  ReservedMemory reuse;
  const bool is_worth_reuse = IsWorthReuse(entry, granules);
  // Reuse before the cache lacks room for the whole window: later granules would be new memory.
  while (is_worth_reuse && reuse.data() == nullptr && cache_.LacksRoomForWhole(entry)) {
    cache_.EvictOldest(lock, &reuse);
  }
  cache_.MakeRoom(lock, is_worth_reuse ? &reuse : nullptr);
  ReuseBuffer(entry, std::move(reuse));
  cache_.MakeRoom(lock);
  Status status = map_ != nullptr ? Status() : ReserveBuffer(lock, entry);
  const Granules unasked = granules & ~entry.asked;
  GranulePages own = Known(entry, granules);
  // Granules of whole large pages, if ReadAhead left some to this read.
  Granules large = WholeLargePages(entry.large & granules);
  Granules to_read = AnyOf(granules & ~large & (~entry.ahead | entry.large), own);
  lock.unlock();
  if (status.ok()) {
    status = CatchOutOfMemory([&] {
      // Pages are counted by now.
      MemoryWatch::BeforeTaking(BytesIn(granules), map_ != nullptr ? 0 : BytesIn(granules));
      const Granules uncached = FindOwn(entry.number, unasked, own);
      // Bytes that were found cached before came through the page cache.
      const Granules done =
          is_remote_ ? ReadPastCache(entry.buffer, entry.number, uncached, granules) : Granules{0};
      to_read = (to_read | uncached) & ~done;
      large |= LargePagesOf(to_read, own);
      StartReading(entry.number, to_read & ~large);
      MakeRoomForLargePages(entry.number, large, granules & ~unasked);
      // Cached pages are mapped by page faults of the reader: to populate them, the kernel would
      // look at each again.
      return map_ != nullptr ? Populate(entry.number, to_read | large)
                             : ReadInto(entry.buffer, entry.number, granules & ~done);
    });
    // They stay our own, because a thread that reads a header there may bring one back.
    if (map_ == nullptr && !cache_.keeps_pages_) {
      ForEachRunOfPages(entry.number, own, [this](ByteRange pages) { pages_->DropCached(pages); });
    }
  }
  lock.lock();
  EndWork(entry, granules, own);
  entry.large = (entry.large & ~granules) | large;
  if (status.ok()) {
    entry.present |= granules;
    cache_.filled_ += BytesIn(granules);
  }
  return status;
}

void FileWindows::FindOwn(Lock& lock, Entry& entry, Granules granules) {
  if (granules == 0) return;
  entry.busy |= granules;
  lock.unlock();
  GranulePages own{};
  const Granules uncached = FindOwn(entry.number, granules, own);
  // A server answers for a granule as fast as for a page; it may hold the next header, too.
  if (map_ == nullptr) StartReading(entry.number, uncached);
  lock.lock();
  EndWork(entry, granules, own);
  cache_.Hold(entry, AnyOf(granules, entry.own));
  cache_.MakeRoom(lock);
}

bool FileWindows::IsWorthReuse(const Entry& entry, Granules granules) const {
  if (map_ != nullptr || entry.buffer.data() != nullptr) return false;
  if (BytesIn(granules) >= kWorthReuse) return true;
  if (!cache_.HasRoomForWhole()) return false;
  const auto before = entries_.find(entry.number - 1);
  return before != entries_.end() && BytesIn(before->second->held) >= kWorthReuse;
}

void FileWindows::ReuseBuffer(Entry& entry, ReservedMemory reuse) {
  if (reuse.data() == nullptr || entry.buffer.data() != nullptr) return;
  cache_.GiveBuffer(entry, std::move(reuse));
  cache_.Hold(entry, ~Granules{0});
}

Status FileWindows::ReserveBuffer(Lock& lock, Entry& entry) {
  while (entry.buffer.data() == nullptr) {
    Result<ReservedMemory> buffer = ReservedMemory::Make(kWindowBytes);
    if (buffer.ok()) {
      cache_.GiveBuffer(entry, std::move(*buffer));
    } else if (cache_.AnyIdle()) {
      cache_.EvictOldest(lock);  // address space is short
    } else {
      return buffer.status();
    }
  }
  return {};
}

void FileWindows::ReadAhead(Lock& lock, Place entry, Granules granules) {
  entry->busy |= granules;
  const Granules unasked = granules & ~entry->asked;
  GranulePages own = Known(*entry, granules);
  Granules to_read = AnyOf(granules, own);
  lock.unlock();
  to_read |= FindOwn(entry->number, unasked, own);
  // There is no way to ask for large pages and not to wait for them: threads do.
  const Granules large = LargePagesOf(to_read, own);
  to_read &= ~large;
  lock.lock();
  cache_.Hold(*entry, to_read);
  cache_.ahead_ += BytesIn(to_read & ~entry->ahead);
  entry->ahead |= to_read;
  cache_.MakeRoom(lock);
  lock.unlock();
  StartReading(entry->number, to_read);
  lock.lock();
  EndWork(*entry, granules & ~large, own);
  if (large == 0) return;
  entry->busy &= ~large;
  entry->large |= large;
  cache_.Want(entry, large);
}

Granules FileWindows::LargePagesOf(Granules granules, const GranulePages& own) const {
  if (!reads_large_pages_) return 0;
  Granules whole = 0;
  ForEachGranule(granules, [&](size_t i) {
    // Pages that are to be read, but are not our own, have an unknown state.
    if (own[i] == kWholeGranule || own[i] == 0) whole |= Granules{1} << i;
  });
  return WholeLargePages(whole);
}

void FileWindows::MakeRoomForLargePages(uint64_t number, Granules large, Granules touched) const {
  if (cache_.keeps_pages_) return;
  for (const Granules page : kLargePages) {
    if ((large & page) == 0 || (touched & page) == 0) continue;
    ForEachRun(number, page, [this](ByteRange run) {
      pages_->Unmap(Clip(run, source_));
      pages_->DropCached(Clip(run, source_));
    });
  }
}

GranulePages FileWindows::Known(const Entry& entry, Granules granules) {
  GranulePages known{};
  ForEachGranule(granules & entry.asked, [&](size_t i) { known[i] = entry.own[i]; });
  return known;
}

void FileWindows::EndWork(Entry& entry, Granules granules, const GranulePages& own) {
  ForEachGranule(granules, [&](size_t i) { entry.own[i] |= own[i]; });
  entry.asked |= granules;
  entry.busy &= ~granules;
  cache_.changed_.notify_all();
}

Granules FileWindows::FindOwn(uint64_t number, Granules granules, GranulePages& own) const {
  if (pages_ == nullptr) return 0;
  Granules uncached = 0;
  ForEachRun(number, granules, [&](ByteRange run) {
    const Residency found =
        pages_->FindUncached(run, [&own](ByteRange pages) { SetPages(pages, own); });
    if (found == Residency::kUnknown) uncached |= GranulesOf(run);
  });
  return uncached | AnyOf(granules, own);
}

void FileWindows::StartReading(uint64_t number, Granules granules) const {
  ForEachRun(number, granules, [this](ByteRange run) { source_.Prefetch(Clip(run, source_)); });
}

Status FileWindows::Populate(uint64_t number, Granules granules) const {
  Status status;
  ForEachRun(number, granules, [this, &status](ByteRange run) {
    run.length = std::min(run.length, source_.size() - run.offset);
    const Status populated = pages_->Populate(run);
    if (status.ok()) status = populated;
  });
  return status;
}

Status FileWindows::ReadInto(ReservedMemory& buffer, uint64_t number, Granules granules) const {
  Status status;
  ForEachRun(number, granules, [this, &buffer, &status](ByteRange run) {
    if (!status.ok()) return;
    const uint64_t begin = run.offset % kWindowBytes;
    status = buffer.Commit(begin, run.length);
    if (!status.ok()) return;
    const uint64_t length = std::min(run.length, source_.size() - run.offset);
    status = source_.ReadAt(run.offset, {buffer.data() + begin, length});
  });
  return status;
}

Granules FileWindows::ReadPastCache(ReservedMemory& buffer, uint64_t number, Granules granules,
                                    Granules between) {
  Granules done = 0;
  if (pages_ == nullptr) return done;
  granules |= ShortGaps(granules) & between;
  ForEachRun(number, granules, [&](ByteRange run) {
    if (run.length <= kPrefetchBytes || past_cache_failed_) return;
    std::call_once(opening_past_cache_, [this] { past_cache_ = pages_->OpenPastCache(); });
    const uint64_t begin = run.offset % kWindowBytes;
    if (past_cache_.get() < 0 || !buffer.Commit(begin, run.length).ok()) return;
    const uint64_t length = std::min(run.length, source_.size() - run.offset);
    if (pages_->ReadPastCache(past_cache_, run.offset, {buffer.data() + begin, length})) {
      done |= GranulesOf(run);
    } else {
      past_cache_failed_ = true;
    }
  });
  return done;
}

GranulePages FileWindows::Drop(uint64_t number, Granules granules, const GranulePages& own) const {
  if (pages_ == nullptr) return {};
  if (map_ != nullptr) {
    // The kernel maps cached pages around a requested page, our own pages, too.
    ForEachRun(number, granules | AnyOf(~Granules{0}, own),
               [this](ByteRange run) { pages_->Unmap(Clip(run, source_)); });
  }
  GranulePages stayed{};
  if (cache_.keeps_pages_) return stayed;
  ForEachRunOfPages(number, own, [this, &stayed](ByteRange pages) {
    if (!pages_->DropCached(pages)) return;
    SetPages(pages, stayed);
    const Residency found =
        pages_->FindUncached(pages, [&stayed](ByteRange gone) { ClearPages(gone, stayed); });
    if (found == Residency::kUnknown) ClearPages(pages, stayed);
  });
  return stayed;
}

}  // namespace reshard
