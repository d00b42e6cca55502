#include "src/tensor/coverage.h"

#include <algorithm>
#include <utility>

namespace reshard {
namespace {

bool Contains(const Box& whole, const Box& part) {
  for (size_t d = 0; d < whole.dims(); ++d) {
    if (part.begin[d] < whole.begin[d] ||
        part.begin[d] + part.extent[d] > whole.begin[d] + whole.extent[d]) {
      return false;
    }
  }
  return true;
}

// A group of boxes that no cut has told apart so far: boxes [begin, end), to be looked at along
// `dim`. `stuck` is in how many dimensions one after the other nothing came apart.
struct Group {
  size_t begin = 0;
  size_t end = 0;
  size_t dim = 0;
  size_t stuck = 0;
};

bool PairwiseDisjoint(const std::vector<const Box*>& boxes, const Group& group) {
  for (size_t i = group.begin; i < group.end; ++i) {
    for (size_t j = i + 1; j < group.end; ++j) {
      if (Intersect(*boxes[i], *boxes[j])) return false;
    }
  }
  return true;
}

// Splits the boxes into groups whose intervals in one dimension do not touch one another's, and
// looks into each group along the next one: two boxes overlap only where no dimension tells them
// apart. What comes apart nowhere is compared pairwise.
bool Disjoint(std::vector<const Box*> boxes) {
  std::vector<Group> groups = {{0, boxes.size(), 0, 0}};
  while (!groups.empty()) {
    const Group group = groups.back();
    groups.pop_back();
    if (group.end - group.begin < 2) continue;
    const size_t dims = boxes[group.begin]->dims();
    if (group.stuck == dims) {
      if (!PairwiseDisjoint(boxes, group)) return false;
      continue;
    }
    const size_t dim = group.dim;
    std::sort(boxes.begin() + static_cast<std::ptrdiff_t>(group.begin),
              boxes.begin() + static_cast<std::ptrdiff_t>(group.end),
              [dim](const Box* a, const Box* b) { return a->begin[dim] < b->begin[dim]; });
    size_t first = group.begin;
    int64_t end = boxes[first]->begin[dim] + boxes[first]->extent[dim];
    for (size_t i = first + 1; i <= group.end; ++i) {
      if (i < group.end && boxes[i]->begin[dim] < end) {
        end = std::max(end, boxes[i]->begin[dim] + boxes[i]->extent[dim]);
        continue;
      }
      const bool whole = first == group.begin && i == group.end;
      groups.push_back({first, i, (dim + 1) % dims, whole ? group.stuck + 1 : 1});
      first = i;
      if (i < group.end) end = boxes[i]->begin[dim] + boxes[i]->extent[dim];
    }
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
    if (!Contains(whole, part)) return false;
    volume += Volume(part);
    boxes.push_back(&part);
  }
  return volume == Volume(whole) && Disjoint(std::move(boxes));
}

}  // namespace reshard
