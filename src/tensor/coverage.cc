#include "src/tensor/coverage.h"

#include <algorithm>
#include <span>

namespace reshard {
namespace {

// Splits the boxes into groups whose intervals in dimension `dim` do not touch one another's, and
// looks into each group along the next dimension: two boxes overlap only where they share a group
// in every dimension.
bool Disjoint(std::span<const Box*> boxes, size_t dim) {
  if (boxes.size() < 2) return true;
  if (dim == boxes[0]->dims()) {  // what no dimension told apart
    for (size_t i = 0; i < boxes.size(); ++i) {
      for (size_t j = i + 1; j < boxes.size(); ++j) {
        if (Intersect(*boxes[i], *boxes[j])) return false;
      }
    }
    return true;
  }
  std::sort(boxes.begin(), boxes.end(),
            [dim](const Box* a, const Box* b) { return a->begin[dim] < b->begin[dim]; });
  size_t first = 0;
  int64_t end = boxes[0]->begin[dim] + boxes[0]->extent[dim];
  for (size_t i = 1; i <= boxes.size(); ++i) {
    if (i < boxes.size() && boxes[i]->begin[dim] < end) {
      end = std::max(end, boxes[i]->begin[dim] + boxes[i]->extent[dim]);
      continue;
    }
    if (!Disjoint(boxes.subspan(first, i - first), dim + 1)) return false;
    first = i;
    if (i < boxes.size()) end = boxes[i]->begin[dim] + boxes[i]->extent[dim];
  }
  return true;
}

}  // namespace

bool CoversExactly(const Box& whole, const std::vector<Box>& parts) {
  uint64_t volume = 0;
  std::vector<const Box*> boxes;
  boxes.reserve(parts.size());
  for (const Box& part : parts) {
    if (part.empty()) continue;
    if (Intersect(whole, part) != part) return false;
    volume += Volume(part);
    boxes.push_back(&part);
  }
  return volume == Volume(whole) && Disjoint(boxes, 0);
}

}  // namespace reshard
