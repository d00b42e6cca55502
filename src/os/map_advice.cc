#include "src/os/map_advice.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "src/os/fault_guard.h"

// Since Linux 5.14; headers may be older than the kernel.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace reshard {
namespace {

// madvise takes a pointer to mutable bytes, though none of this advice changes them.
void* Address(const std::byte* data) { return const_cast<std::byte*>(data); }

size_t OffsetInPage(const std::byte* data) {
  return reinterpret_cast<uintptr_t>(data) & (PageSize() - 1);
}

}  // namespace

size_t PageSize() {
  static const auto kSize = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kSize;
}

void AdviseRandom(const std::byte* data, size_t size) { madvise(Address(data), size, MADV_RANDOM); }

void Prefetch(const std::byte* data, size_t size) {
  const size_t before = OffsetInPage(data);
  data -= before;
  size += before;
  for (size_t at = 0; at < size; at += kPrefetchBytes) {
    madvise(Address(data + at), std::min(kPrefetchBytes, size - at), MADV_WILLNEED);
  }
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

}  // namespace reshard
