// Granules: the pieces in which a window of a source file becomes present; arithmetic on sets of
// them.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_IO_GRANULES_H_
#define RESHARD_SRC_IO_GRANULES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reshard/byte_range.h"

namespace reshard {

// Windows begin at multiples of this.
inline constexpr uint64_t kWindowBytes = uint64_t{4} << 20;

inline constexpr uint64_t kGranuleBytes = uint64_t{64} << 10;

// Granules of a window, a bit each.
using Granules = uint64_t;
static_assert(kWindowBytes / kGranuleBytes == 64);

// Pages of each granule, a bit for kPageUnit bytes; no page is smaller.
using GranulePages = std::array<uint16_t, 64>;
inline constexpr uint64_t kPageUnit = 4096;
inline constexpr uint64_t kUnits = kGranuleBytes / kPageUnit;

// Returns the granules with bytes of `range`, which is not empty and lies within a window.
Granules GranulesOf(ByteRange range);

// Returns the lowest `count` of `granules`.
Granules Lowest(Granules granules, uint64_t count);

// Returns those of `granules` of which any page is set.
Granules AnyOf(Granules granules, const GranulePages& pages);

inline bool Any(const GranulePages& pages) { return pages != GranulePages{}; }

inline uint64_t BytesIn(Granules granules) {
  return static_cast<uint64_t>(std::popcount(granules)) * kGranuleBytes;
}

// Calls visit(i) for each granule, ascending.
template <typename Visit>
void ForEachGranule(Granules granules, const Visit& visit) {
  for (; granules != 0; granules &= granules - 1) {
    visit(static_cast<size_t>(std::countr_zero(granules)));
  }
}

// Calls visit(range) for each run of granules of window number `number`, with its bytes in the
// file.
template <typename Visit>
void ForEachRun(uint64_t number, Granules granules, const Visit& visit) {
  for (uint64_t at = 0; granules != 0;) {
    const int gap = std::countr_zero(granules);
    granules >>= gap;
    at += static_cast<uint64_t>(gap);
    const int count = std::countr_one(granules);
    visit(ByteRange{number * kWindowBytes + at * kGranuleBytes,
                    static_cast<uint64_t>(count) * kGranuleBytes});
    granules = count == 64 ? 0 : granules >> count;
    at += static_cast<uint64_t>(count);
  }
}

// The same for each run of pages that are set.
template <typename Visit>
void ForEachRunOfPages(uint64_t number, const GranulePages& pages, const Visit& visit) {
  const auto is_set = [&pages](uint64_t unit) {
    return (pages[unit / kUnits] >> (unit % kUnits) & 1) != 0;
  };
  constexpr uint64_t kAll = 64 * kUnits;
  for (uint64_t begin = 0, end = 0; begin < kAll; begin = end) {
    while (begin < kAll && !is_set(begin)) ++begin;
    for (end = begin; end < kAll && is_set(end);) ++end;
    if (end == begin) break;
    visit(ByteRange{number * kWindowBytes + begin * kPageUnit, (end - begin) * kPageUnit});
  }
}

// Set and clear the pages of `range`, as far as they lie in the window in which it begins.
void SetPages(ByteRange range, GranulePages& pages);
void ClearPages(ByteRange range, GranulePages& pages);

}  // namespace reshard

#endif  // RESHARD_SRC_IO_GRANULES_H_
