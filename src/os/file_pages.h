// Pages of a file that is read: advice to the kernel about the pages of its map, which pages are in
// the page cache, and their removal from it. Any thread.
//
// Ignored advice does no harm. The kernel tells the state of the page cache only to the owner of a
// file, or with write permission. Otherwise it gives no answer (cachestat), or says that all is
// cached (mincore, before Linux 6.5).
#ifndef RESHARD_SRC_OS_FILE_PAGES_H_
#define RESHARD_SRC_OS_FILE_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "reshard/byte_range.h"

namespace reshard {

// Bytes of a page: 4 KiB on most machines, 64 KiB on some.
size_t PageSize();

// The kernel should read only the touched pages, and none around them. `data` begins a page.
void AdviseRandom(const std::byte* data, size_t size);

// The size that the kernel reads, holds and maps as one page, if it can. This is much less work
// than with pages of 4 KiB.
inline constexpr uint64_t kLargePageBytes = uint64_t{2} << 20;

// Returns the end of the large page that `offset` lies in, or `offset` if a large page ends there.
constexpr uint64_t ToLargePage(uint64_t offset) {
  return (offset + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
}

// From now on, touching an uncached page reads the file's large page around it. Returns false,
// without effect, if the kernel does not support that (before Linux 5.18; 6.5 is required) or has
// large pages of another size. `data` begins the map of a whole file.
bool AdviseLargePages(const std::byte* data, size_t size);

// The most that one call of the kernel reads ahead on a disk with its usual settings; it would
// leave out the rest of more.
inline constexpr size_t kPrefetchBytes = size_t{128} << 10;

// Reads the pages with these bytes of a file's map and makes them present. After AdviseRandom,
// reads single pages and no others, except those that were asked for ahead. After AdviseLargePages,
// reads large pages. Returns no value, or the offset from `data` of a byte that cannot be read.
std::optional<size_t> Populate(const std::byte* data, size_t size);

// Gives back the pages that lie wholly within these bytes; touching them again brings them back.
void DropPages(const std::byte* data, size_t size);

// The most bytes that FindUncached is asked about at once.
inline constexpr uint64_t kMostResidencyBytes = uint64_t{4} << 20;

enum class Residency { kAllCached, kNotAllCached, kUnknown };

// Calls visit(pages), in ascending order, for whole pages of the file that are not in the page
// cache and have bytes of `range`, which begins a page of the file. Pages come and go at any time.
// `size` is the file's, in bytes. `map` is the address of a map of the file from its first byte on,
// or null; it is not touched. Takes no memory, unless `visit` does.
Residency FindUncached(int descriptor, uint64_t size, const std::byte* map, ByteRange range,
                       const std::function<void(ByteRange)>& visit);

// Takes the pages of `range`, which begins a page, out of the page cache. Pages stay if a process
// has mapped them, if the kernel is using them, or if they are not written yet. Before Linux 6.5,
// pages stay that are still being read. Returns whether any may have stayed.
bool DropCached(int descriptor, uint64_t size, ByteRange range);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_PAGES_H_
