// Granules of a window and their pages: sets, and their ranges in the file (window_cache.h).
//
// Pure functions, for the files of the cache only.
#ifndef RESHARD_SRC_IO_GRANULES_H_
#define RESHARD_SRC_IO_GRANULES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reshard/byte_range.h"
#include "src/io/window_cache.h"
#include "src/os/file_pages.h"

namespace reshard {

inline constexpr uint64_t kPageUnit = 4096;
inline constexpr uint64_t kUnits = kGranuleBytes / kPageUnit;
inline constexpr uint16_t kWholeGranule = 0xffff;
static_assert(kUnits == 16);

// The granules of each of a window's large pages.
inline constexpr std::array<Granules, 2> kLargePages{~Granules{0} >> 32, ~Granules{0} << 32};
static_assert(kWindowBytes == 2 * kLargePageBytes);

// Returns the granules with bytes of `range`, which is not empty and lies within a window.
inline Granules GranulesOf(ByteRange range) {
  const uint64_t first = range.offset % kWindowBytes / kGranuleBytes;
  const uint64_t last = (range.end() - 1) % kWindowBytes / kGranuleBytes;
  return (~Granules{0} << first) & (~Granules{0} >> (63 - last));
}

// Returns the subset of `granules` that make up whole large pages.
inline Granules WholeLargePages(Granules granules) {
  Granules whole = 0;
  for (const Granules page : kLargePages) {
    if ((granules & page) == page) whole |= page;
  }
  return whole;
}

// Returns the short gaps between `granules`.
inline Granules ShortGaps(Granules granules) {
  constexpr uint64_t kFew = 4;
  Granules gaps = 0;
  if (granules == 0) return gaps;
  for (uint64_t i = static_cast<uint64_t>(std::countr_zero(granules)), last = i; i < 64; ++i) {
    if ((granules >> i & 1) == 0) continue;
    if (i - last - 1 <= kFew) {
      for (uint64_t gap = last + 1; gap < i; ++gap) gaps |= Granules{1} << gap;
    }
    last = i;
  }
  return gaps;
}

// Returns the lowest `count` of `granules`.
inline Granules Lowest(Granules granules, uint64_t count) {
  Granules lowest = 0;
  for (; granules != 0 && count > 0; --count) {
    lowest |= granules & -granules;
    granules &= granules - 1;
  }
  return lowest;
}

inline uint64_t BytesIn(Granules granules) {
  return static_cast<uint64_t>(std::popcount(granules)) * kGranuleBytes;
}

// Calls visit(i) for each granule, ascending.
template <typename Visit>
inline void ForEachGranule(Granules granules, const Visit& visit) {
  for (; granules != 0; granules &= granules - 1) {
    visit(static_cast<size_t>(std::countr_zero(granules)));
  }
}

// Calls visit(range) for each run of granules of window number `number`, with its bytes in the
// file.
template <typename Visit>
inline void ForEachRun(uint64_t number, Granules granules, const Visit& visit) {
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
inline void ForEachRunOfPages(uint64_t number, const GranulePages& pages, const Visit& visit) {
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

// Calls visit(granule, bit) for each unit of `range`, as far as it lies in the window in which the
// range begins.
template <typename Visit>
inline void ForEachUnit(ByteRange range, const Visit& visit) {
  const uint64_t first = range.offset % kWindowBytes / kPageUnit;
  const uint64_t end = std::min(first + range.length / kPageUnit, 64 * kUnits);
  for (uint64_t unit = first; unit < end; ++unit) {
    visit(unit / kUnits, static_cast<uint16_t>(1U << (unit % kUnits)));
  }
}

// Set and clear the pages of `range`, as far as they lie in the window in which it begins.
inline void SetPages(ByteRange range, GranulePages& pages) {
  ForEachUnit(range, [&pages](size_t granule, uint16_t bit) { pages[granule] |= bit; });
}
inline void ClearPages(ByteRange range, GranulePages& pages) {
  ForEachUnit(range, [&pages](size_t granule, uint16_t bit) {
    pages[granule] &= static_cast<uint16_t>(~bit);
  });
}

inline bool AnyPage(const GranulePages& pages) { return pages != GranulePages{}; }

// Returns the subset of `granules` with any page in `pages`.
inline Granules AnyOf(Granules granules, const GranulePages& pages) {
  Granules any = 0;
  ForEachGranule(granules, [&](size_t i) {
    if (pages[i] != 0) any |= Granules{1} << i;
  });
  return any;
}

}  // namespace reshard

#endif  // RESHARD_SRC_IO_GRANULES_H_
