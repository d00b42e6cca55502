// Which pages of a file are in the page cache, and taking them out of it. Any thread.
//
// The kernel tells only who owns a file or may write to it; to others it says nothing (cachestat),
// or that all is cached (mincore, before Linux 6.5).
#ifndef RESHARD_SRC_OS_PAGE_RESIDENCY_H_
#define RESHARD_SRC_OS_PAGE_RESIDENCY_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "reshard/byte_range.h"

namespace reshard {

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

#endif  // RESHARD_SRC_OS_PAGE_RESIDENCY_H_
