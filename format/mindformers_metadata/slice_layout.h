// SliceLayout: the layout of a tensor in metadata.json of MindFormers 2.0, and the slice that each
// rank holds by it (SPEC.md).
//
// A plain value; any thread.
#ifndef RESHARD_FORMAT_MINDFORMERS_METADATA_SLICE_LAYOUT_H_
#define RESHARD_FORMAT_MINDFORMERS_METADATA_SLICE_LAYOUT_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "reshard/status.h"

namespace reshard {

struct SliceLayout {
  std::vector<int64_t> device_matrix;
  // For each dimension the axes of the matrix that cut it, counted from the right, the outermost
  // first; empty: not cut.
  std::vector<std::vector<int64_t>> tensor_map;
  std::vector<int64_t> ranks;  // in the order of the matrix
  bool is_interleaved = false;

  friend auto operator<=>(const SliceLayout&, const SliceLayout&) = default;
};

// The slices by a layout.
struct SlicesOfRanks {
  std::vector<int64_t> fragments;    // the cuts of each dimension
  std::map<int64_t, int64_t> slice;  // by rank: its number, row-major among the fragments
};

// Errors: kCorrupt, without a path, if the layout contradicts itself.
Result<SlicesOfRanks> SlicesOf(const SliceLayout& layout);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MINDFORMERS_METADATA_SLICE_LAYOUT_H_
