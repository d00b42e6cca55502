#include "src/os/file_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <fstream>

#include "src/os/fault_guard.h"

// Since Linux 5.14; headers may be older than the kernel.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace reshard {
namespace {

// madvise takes a pointer to mutable bytes, but this advice does not change them.
void* Address(const std::byte* data) { return const_cast<std::byte*>(data); }

size_t OffsetInPage(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data) & (PageSize() - 1);
}

// Since Linux 6.5; headers may be older than the kernel. The same on all machines.
constexpr long kCachestat = 451;

struct CachestatRange {
  uint64_t offset;
  uint64_t length;
};

struct Cachestat {
  uint64_t cached;
  uint64_t dirty;
  uint64_t writeback;
  uint64_t evicted;
  uint64_t recently_evicted;
};

std::optional<uint64_t> CountCached(int descriptor, ByteRange pages) {
  CachestatRange range{pages.offset, pages.length};
  Cachestat found{};
  if (syscall(kCachestat, descriptor, &range, &found, 0) != 0) return std::nullopt;
  return found.cached;
}

bool HasCachestat() { return syscall(kCachestat, -1, nullptr, nullptr, 0) != 0 && errno == EBADF; }

// Halves `pages`, with uncached ones, until each part is cached or uncached as a whole.
void VisitUncached(int descriptor, ByteRange pages, uint64_t cached,
                   const std::function<void(ByteRange)>& visit) {
  if (cached == 0) return visit(pages);
  const ByteRange left{pages.offset, pages.length / PageSize() / 2 * PageSize()};
  for (const ByteRange half : {left, ByteRange{left.end(), pages.length - left.length}}) {
    const uint64_t count = half.length / PageSize();
    const uint64_t cached_half = CountCached(descriptor, half).value_or(count);
    if (cached_half < count) VisitUncached(descriptor, half, cached_half, visit);
  }
}

// Whether mincore answers about the file. It answers for the owner, or with write permission;
// otherwise it says that all is cached. Before Linux 5.8 there is no call that asks for the
// permission.
bool TellsUs(int descriptor) {
  struct stat found {};
  if (fstat(descriptor, &found) == 0 && found.st_uid == geteuid()) return true;
  return faccessat(descriptor, "", W_OK, AT_EMPTY_PATH | AT_EACCESS) == 0;
}

// `data` is the address of the mapped pages.
Residency FindByMincore(int descriptor, void* data, ByteRange pages,
                        const std::function<void(ByteRange)>& visit) {
  std::array<unsigned char, kMostResidencyBytes / 4096> flags;
  const uint64_t count = pages.length / PageSize();
  if (mincore(data, pages.length, flags.data()) != 0) return Residency::kUnknown;
  bool all = true;
  for (uint64_t i = 0; i < count;) {
    uint64_t end = i;
    while (end < count && (flags[end] & 1) == 0) ++end;
    if (end > i) {
      all = false;
      visit({pages.offset + i * PageSize(), (end - i) * PageSize()});
    }
    i = end + 1;
  }
  if (!all) return Residency::kNotAllCached;
  return TellsUs(descriptor) ? Residency::kAllCached : Residency::kUnknown;
}

}  // namespace

size_t PageSize() {
  static const auto kSize = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kSize;
}

void AdviseRandom(const std::byte* data, size_t size) { madvise(Address(data), size, MADV_RANDOM); }

bool AdviseLargePages(const std::byte* data, size_t size) {
  static const bool kTakesAdvice = [] {
    if (!HasCachestat()) return false;  // the advice may be too new for the kernel as well
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    uint64_t bytes = 0;
    return file >> bytes && bytes == kLargePageBytes;
  }();
  return kTakesAdvice && madvise(Address(data), size, MADV_HUGEPAGE) == 0;
}

std::optional<size_t> Populate(const std::byte* data, size_t size) {
  if (size == 0) return std::nullopt;
  const size_t before = OffsetInPage(data);
  if (madvise(Address(data - before), size + before, MADV_POPULATE_READ) == 0) return std::nullopt;
  // An older kernel, or a page that fails: touching them tells.
  return Guarded(data, size, [data, size] {
    const volatile std::byte* bytes = data;
    for (size_t i = 0; i < size; i += PageSize()) static_cast<void>(bytes[i]);
    static_cast<void>(bytes[size - 1]);
  });
}

void DropPages(const std::byte* data, size_t size) {
  const size_t before = OffsetInPage(data) == 0 ? 0 : PageSize() - OffsetInPage(data);
  if (size < before) return;
  const size_t whole = (size - before) & ~(PageSize() - 1);
  if (whole != 0) madvise(Address(data + before), whole, MADV_DONTNEED);
}

Residency FindUncached(int descriptor, uint64_t size, const std::byte* map, ByteRange range,
                       const std::function<void(ByteRange)>& visit) {
  const uint64_t page = PageSize();
  assert(range.offset % page == 0 && range.length <= kMostResidencyBytes);
  const uint64_t end = std::min(range.end(), size);
  if (end <= range.offset) return Residency::kAllCached;
  const ByteRange pages{range.offset, (end - range.offset + page - 1) / page * page};
  if (const std::optional<uint64_t> cached = CountCached(descriptor, pages)) {
    if (*cached >= pages.length / page) return Residency::kAllCached;
    VisitUncached(descriptor, pages, *cached, visit);
    return Residency::kNotAllCached;
  }
  if (map != nullptr) {
    return FindByMincore(descriptor, const_cast<std::byte*>(map) + pages.offset, pages, visit);
  }
  void* const data = mmap(nullptr, pages.length, PROT_READ, MAP_SHARED, descriptor,
                          static_cast<off_t>(pages.offset));
  if (data == MAP_FAILED) return Residency::kUnknown;
  const Residency found = FindByMincore(descriptor, data, pages, visit);
  munmap(data, pages.length);
  return found;
}

bool DropCached(int descriptor, uint64_t size, ByteRange range) {
  const auto drop = [descriptor, &range] {
    static_cast<void>(posix_fadvise(descriptor, static_cast<off_t>(range.offset),
                                    static_cast<off_t>(range.length), POSIX_FADV_DONTNEED));
  };
  drop();
  // Pages that are still being read stay. Only cachestat tells about them; reading from them waits
  // for the end.
  const std::optional<uint64_t> cached = CountCached(descriptor, range);
  if (!cached) return true;
  if (*cached == 0) return false;
  uint64_t next = range.offset;
  const auto wait_until = [descriptor, &next](uint64_t end) {
    for (; next < end; next += PageSize()) {
      std::byte byte;
      static_cast<void>(pread(descriptor, &byte, 1, static_cast<off_t>(next)));
    }
  };
  FindUncached(descriptor, size, nullptr, range, [&wait_until, &next](ByteRange pages) {
    wait_until(pages.offset);
    next = pages.end();
  });
  wait_until(std::min(range.end(), size));
  drop();
  return true;
}

}  // namespace reshard
