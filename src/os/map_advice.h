// What the kernel is told about the pages of a file's map. Advice that it does not take harms
// nothing. Any thread.
#ifndef RESHARD_SRC_OS_MAP_ADVICE_H_
#define RESHARD_SRC_OS_MAP_ADVICE_H_

#include <cstddef>
#include <optional>

namespace reshard {

// Bytes of a page: 4 KiB on most machines, 64 KiB on some.
size_t PageSize();

// Nothing is to be read around the pages that are touched. `data` begins a page.
void AdviseRandom(const std::byte* data, size_t size);

// The most that one call of the kernel reads ahead on a disk with its usual settings; it would
// leave out the rest of more.
inline constexpr size_t kPrefetchBytes = size_t{128} << 10;

// Reads the pages that hold these bytes of a file's map and makes them present, and no others:
// after AdviseRandom one at a time, but for those that Prefetch was asked for.
// Returns nothing, or the offset from `data` of a byte that cannot be read.
std::optional<size_t> Populate(const std::byte* data, size_t size);

// Starts reading the pages that hold these bytes, and does not wait for them.
void Prefetch(const std::byte* data, size_t size);

// Gives back the pages that lie wholly within these bytes; touching them again brings them back.
void DropPages(const std::byte* data, size_t size);

}  // namespace reshard

#endif  // RESHARD_SRC_OS_MAP_ADVICE_H_
