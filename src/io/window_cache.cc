#include "src/io/window_cache.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/io/file_windows.h"
#include "src/io/granules.h"
#include "src/os/file_pages.h"

namespace reshard {
namespace {

// The size of a file system's request to a server, past the page cache.
constexpr uint64_t kWorthARequest = uint64_t{1} << 20;

// The most windows with pages that stayed because a process has mapped them. Beyond it, the oldest
// is forgotten.
constexpr size_t kMostStayed = 64;

}  // namespace

WindowCache::~WindowCache() {
  assert(pinned_.empty() && !AnyIdle() && headers_.empty() && stayed_.empty());
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  is_wanted_.notify_all();
  for (std::optional<Thread>& reader : readers_) reader.reset();
}

void WindowCache::SetBudget(uint64_t budget, uint64_t headers) {
  const std::scoped_lock lock(mutex_);
  budget_ = budget;
  header_budget_ = headers;
}

void WindowCache::GiveBack() {
  Lock lock(mutex_);
  budget_ = header_budget_ = 0;
  MakeRoom(lock);
}

uint64_t WindowCache::HeldPeak() const {
  const std::lock_guard lock(mutex_);
  return held_peak_;
}

uint64_t WindowCache::Held() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

uint64_t WindowCache::PagesPeak() const {
  const std::scoped_lock lock(mutex_);
  return pages_peak_;
}

uint64_t WindowCache::HeldForHeaders() const {
  const std::scoped_lock lock(mutex_);
  return header_bytes_;
}

uint64_t WindowCache::BytesAhead() const {
  const Lock lock(mutex_);
  return MostAhead();
}

uint64_t WindowCache::Filled() const {
  const std::scoped_lock lock(mutex_);
  return filled_;
}

uint64_t WindowCache::Buffered() const {
  const std::scoped_lock lock(mutex_);
  return held_ - std::min<uint64_t>(held_, *pages_);
}

uint64_t WindowCache::PagesOf(const Entry& entry) {
  return entry.buffer.data() == nullptr ? BytesIn(entry.held) : 0;
}

void WindowCache::Hold(Entry& entry, Granules granules) {
  const uint64_t before = PagesOf(entry);
  held_ += BytesIn(granules & ~entry.held);
  entry.held |= granules;
  *pages_ += PagesOf(entry) - before;
}

void WindowCache::GiveBuffer(Entry& entry, ReservedMemory buffer) {
  *pages_ -= PagesOf(entry);
  entry.buffer = std::move(buffer);
}

void WindowCache::EndReadAhead(Entry& entry, Granules granules) {
  ahead_ -= BytesIn(granules & entry.ahead);
  entry.ahead &= ~granules;
}

std::list<WindowCache::Entry>& WindowCache::ListOf(const Entry& entry) {
  if (entry.wanted != 0) return wanted_;
  if (entry.pins > 0) return pinned_;
  if (entry.held == 0) return stayed_;
  if (entry.ahead != 0) return awaited_;
  return entry.is_read ? idle_ : headers_;
}

void WindowCache::Splice(std::list<Entry>& to, std::list<Entry>& from, Place entry) {
  if (&from == &headers_) header_bytes_ -= BytesIn(entry->held);
  if (&to == &headers_) header_bytes_ += BytesIn(entry->held);
  to.splice(to.end(), from, entry);
}

void WindowCache::ReadWanted() {
  Lock lock(mutex_);
  while (true) {
    ++idle_readers_;
    is_wanted_.wait(lock, [this] { return closing_ || !wanted_.empty(); });
    --idle_readers_;
    if (closing_) return;
    const Place entry = NextWanted();
    Granules wanted = 0;
    Move(entry, [&] {
      ++entry->pins;
      wanted = std::exchange(entry->wanted, 0);
    });
    ReservedMemory reuse;
    // Never evicts awaited windows, because they would have to be read again.
    while (IsOver(BytesIn(wanted & ~entry->held)) && AnyUsed()) {
      EvictOldest(lock, &reuse);
    }
    // Another thread may be at some granules by now.
    const Granules todo = wanted & ~entry->present & ~entry->busy;
    if (IsOver(BytesIn(todo & ~entry->held))) {
      EndReadAhead(*entry, todo);
      entry->large &= ~todo;
    } else if (todo != 0) {
      if (entry->file->IsWorthReuse(*entry, todo) && !IsOver(BytesIn(~entry->held))) {
        entry->file->ReuseBuffer(*entry, std::move(reuse));
      }
      // There is room: Fill does not wait for others that read ahead.
      ++reading_;
      // If it fails, the holder reads the bytes again and gets the error.
      static_cast<void>(entry->file->Fill(lock, *entry, todo));
      --reading_;
    }
    Unpin(entry);
    changed_.notify_all();
  }
}

WindowCache::Place WindowCache::NextWanted() {
  // The rest of a window is often asked for soon after its first bytes: they wait for it as long as
  // there is more to do.
  const auto is_large = [](const Entry& entry) { return BytesIn(entry.wanted) >= kWorthARequest; };
  const Place large = std::find_if(wanted_.begin(), wanted_.end(), is_large);
  return large == wanted_.end() ? wanted_.begin() : large;
}

void WindowCache::Want(Place entry, Granules granules) {
  ahead_ += BytesIn(granules & ~entry->ahead);
  entry->ahead |= granules;
  Move(entry, [&] { entry->wanted |= granules; });
  is_wanted_.notify_one();
  if (idle_readers_ >= wanted_.size()) return;
  const auto none = std::find(readers_.begin(), readers_.end(), std::nullopt);
  if (none == readers_.end()) return;
  // Without a thread, the holder of the granules reads them.
  static_cast<void>(CatchOutOfMemory([&]() -> Status {
    RESHARD_ASSIGN_OR_RETURN(Thread reader, Thread::Start([this] { ReadWanted(); }));
    none->emplace(std::move(reader));
    return {};
  }));
}

Granules WindowCache::TakeWanted(Place entry) {
  Granules wanted = 0;
  Move(entry, [&] { wanted = std::exchange(entry->wanted, 0); });
  return wanted & ~entry->present & ~entry->busy;
}

void WindowCache::Unpin(Place entry) {
  Move(entry, [&] { --entry->pins; });
  if (entry->pins > 0 || entry->wanted != 0 || entry->held != 0) return;
  entry->asked = 0;
  const bool stayed = AnyPage(entry->own);
  if (stayed && stayed_.size() <= kMostStayed) return;
  const Place gone = stayed ? stayed_.begin() : entry;
  gone->file->entries_.erase(gone->number);
  stayed_.erase(gone);
}

void WindowCache::MakeRoom(Lock& lock, ReservedMemory* reuse) {
  while (IsOver(0)) {
    if (AnyIdle()) {
      EvictOldest(lock, reuse);
    } else if (evicting_ > 0 || reading_ > 0) {
      changed_.wait(lock);
    } else {
      break;
    }
  }
  held_peak_ = std::max(held_peak_, held_);
  pages_peak_ = std::max<uint64_t>(pages_peak_, *pages_);
}

bool WindowCache::LacksRoomForWhole(const Entry& entry) const {
  return HasRoomForWhole() && IsOver(BytesIn(~entry.held)) && !idle_.empty();
}

Granules WindowCache::UsedOf(const Entry& entry) {
  // A reader that continues begins within the last used granule.
  const Granules used = entry.held & ~entry.ahead & ~(entry.ahead >> 1);
  return (used & ~entry.large) | WholeLargePages(used & entry.large);
}

void WindowCache::EvictOldest(Lock& lock, ReservedMemory* reuse) {
  Place entry = idle_.begin();
  Granules gone = ~Granules{0};
  if (idle_.empty() && AnyUsed()) {
    entry = std::prev(headers_.end());
  } else if (idle_.empty()) {
    entry = awaited_.begin();
    const auto used = std::find_if(awaited_.begin(), awaited_.end(),
                                   [](const Entry& candidate) { return UsedOf(candidate) != 0; });
    if (used != awaited_.end()) {
      entry = used;
      gone = UsedOf(*used);
    }
  }
  Move(entry, [&] { ++entry->pins; });
  ++evicting_;
  // Other threads may work at the rest meanwhile.
  entry->busy |= gone;
  if (gone == ~Granules{0}) entry->is_read = false;
  entry->asked &= ~gone;
  entry->present &= ~gone;
  entry->large &= ~gone;
  // At once: if the window gets a buffer meanwhile, that does not uncount their pages again.
  const Granules held = std::exchange(entry->held, entry->held & ~gone) & gone;
  const uint64_t pages = entry->buffer.data() == nullptr ? BytesIn(held) : 0;
  GranulePages own{};
  ForEachGranule(gone, [&](size_t i) { own[i] = std::exchange(entry->own[i], 0); });
  ReservedMemory buffer;
  if (gone == ~Granules{0}) buffer = std::move(entry->buffer);
  std::byte* const kept = entry->buffer.data();
  lock.unlock();
  const GranulePages stayed = entry->file->Drop(entry->number, held, own);
  // Only a buffer with all its pages counts as a whole window for its next user.
  if (reuse != nullptr && reuse->data() == nullptr && held == ~Granules{0}) {
    *reuse = std::move(buffer);
  }
  buffer = ReservedMemory();
  if (kept != nullptr) {
    ForEachRun(0, held, [kept](ByteRange run) { DropPages(kept + run.offset, run.length); });
  }
  lock.lock();
  --evicting_;
  ForEachGranule(gone, [&](size_t i) { entry->own[i] |= stayed[i]; });
  held_ -= BytesIn(held);
  *pages_ -= pages;
  EndReadAhead(*entry, gone);
  entry->busy &= ~gone;
  Unpin(entry);
  changed_.notify_all();
}

}  // namespace reshard
