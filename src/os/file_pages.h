// Pages of a file that is read: what the kernel is told about those of its map, which of them are
// in the page cache, and taking them out of it. Any thread.
//
// Advice that the kernel does not take harms nothing. Only to who owns a file or may write to it,
// it tells what is in the page cache; to others it says nothing (cachestat), or that all is cached
// (mincore, before Linux 6.5).
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

// Nothing is to be read around the pages that are touched. `data` begins a page.
void AdviseRandom(const std::byte* data, size_t size);

// What the kernel reads as one piece, and holds and maps as one page, where it can: much less work
// than pages of 4 KiB are.
inline constexpr uint64_t kLargePageBytes = uint64_t{2} << 20;

// Returns the end of the large page in whose midst `offset` lies, or `offset` where it ends one.
constexpr uint64_t ToLargePage(uint64_t offset) {
  return (offset + kLargePageBytes - 1) / kLargePageBytes * kLargePageBytes;
}

// From now on a page that is touched and not in the page cache brings the large page with it that
// it lies in, of the file. Returns false, and does nothing, where the kernel does not do that
// (before Linux 5.18; asked is for 6.5) or its large pages have another size. `data` begins the map
// of a whole file.
bool AdviseLargePages(const std::byte* data, size_t size);

// The most that one call of the kernel reads ahead on a disk with its usual settings; it would
// leave out the rest of more.
inline constexpr size_t kPrefetchBytes = size_t{128} << 10;

// Reads the pages that hold these bytes of a file's map and makes them present: after AdviseRandom
// one at a time and no others, but for those that Prefetch was asked for; after AdviseLargePages
// large ones. Returns nothing, or the offset from `data` of a byte that cannot be read.
std::optional<size_t> Populate(const std::byte* data, size_t size);

// Starts reading the pages that hold these bytes, and does not wait for them.
void Prefetch(const std::byte* data, size_t size);

// Gives back the pages that lie wholly within these bytes; touching them again brings them back.
void DropPages(const std::byte* data, size_t size);

// The most bytes that FindUncached is asked about at once.
inline constexpr uint64_t kMostResidencyBytes = uint64_t{4} << 20;

enum class Residency { kAllCached, kNotAllCached, kUnknown };

// Calls visit(pages), in ascending order, for whole pages of the file that are not in the page
// cache and hold some of the bytes of `range`, which begins a page of the file. Pages come and go
// at any time. `size` is the file's, in bytes. `map` is where the file is mapped from its first
// byte on, or null; nothing is touched there. Takes no memory, unless `visit` does.
Residency FindUncached(int descriptor, uint64_t size, const std::byte* map, ByteRange range,
                       const std::function<void(ByteRange)>& visit);

// Takes the pages of `range`, which begins a page, out of the page cache, but for those that a
// process has mapped, that the kernel is using or that are not yet written, and before Linux 6.5
// those that are still being read. Returns whether any may have stayed.
bool DropCached(int descriptor, uint64_t size, ByteRange range);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_FILE_PAGES_H_
