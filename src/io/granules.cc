#include "src/io/granules.h"

#include <algorithm>

namespace reshard {
namespace {

// Calls visit(granule, bit) for each unit of `range`, as far as it lies in the window in which the
// range begins.
template <typename Visit>
void ForEachUnit(ByteRange range, const Visit& visit) {
  const uint64_t first = range.offset % kWindowBytes / kPageUnit;
  const uint64_t end = std::min(first + range.length / kPageUnit, 64 * kUnits);
  for (uint64_t unit = first; unit < end; ++unit) {
    visit(unit / kUnits, static_cast<uint16_t>(1U << (unit % kUnits)));
  }
}

}  // namespace

Granules GranulesOf(ByteRange range) {
  const uint64_t first = range.offset % kWindowBytes / kGranuleBytes;
  const uint64_t last = (range.end() - 1) % kWindowBytes / kGranuleBytes;
  return (~Granules{0} << first) & (~Granules{0} >> (63 - last));
}

Granules Lowest(Granules granules, uint64_t count) {
  Granules lowest = 0;
  for (; granules != 0 && count > 0; --count) {
    lowest |= granules & -granules;
    granules &= granules - 1;
  }
  return lowest;
}

Granules AnyOf(Granules granules, const GranulePages& pages) {
  Granules any = 0;
  ForEachGranule(granules, [&](size_t i) {
    if (pages[i] != 0) any |= Granules{1} << i;
  });
  return any;
}

void SetPages(ByteRange range, GranulePages& pages) {
  ForEachUnit(range, [&pages](size_t granule, uint16_t bit) { pages[granule] |= bit; });
}

void ClearPages(ByteRange range, GranulePages& pages) {
  ForEachUnit(range, [&pages](size_t granule, uint16_t bit) {
    pages[granule] &= static_cast<uint16_t>(~bit);
  });
}

}  // namespace reshard
