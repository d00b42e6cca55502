#include "src/source/part_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "src/base/checked.h"
#include "src/base/quote.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

int64_t EndOf(const Box& box, size_t d) { return box.begin[d] + box.extent[d]; }

// Finds the first hole among boxes that cover all of `hole`'s dimensions before `d`, and sets
// `hole` from `d` on. Returns whether there is one.
bool FindHole(const Box& whole, size_t d, std::vector<const Box*> boxes, Box& hole) {
  if (boxes.empty()) {
    for (size_t i = d; i < whole.dims(); ++i) {
      hole.begin[i] = whole.begin[i];
      hole.extent[i] = whole.extent[i];
    }
    return true;
  }
  if (d == whole.dims()) return false;
  std::vector<int64_t> edges = {whole.begin[d], EndOf(whole, d)};
  for (const Box* const box : boxes) {
    edges.push_back(box->begin[d]);
    edges.push_back(EndOf(*box, d));
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::sort(boxes.begin(), boxes.end(),
            [d](const Box* a, const Box* b) { return a->begin[d] < b->begin[d]; });
  std::vector<const Box*> active;
  size_t next = 0;
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    std::erase_if(active, [&](const Box* box) { return EndOf(*box, d) <= edges[i]; });
    while (next < boxes.size() && boxes[next]->begin[d] <= edges[i]) {
      active.push_back(boxes[next++]);
    }
    if (!FindHole(whole, d + 1, active, hole)) continue;
    hole.begin[d] = edges[i];
    hole.extent[d] = edges[i + 1] - edges[i];
    return true;
  }
  return false;
}

// Two parts that share elements and are no replicas.
struct Overlap {
  const PartList::Part* first = nullptr;
  const PartList::Part* second = nullptr;
};

std::optional<Overlap> FindOverlap(const PartList& list, const PartList::Tensor& tensor) {
  for (size_t i = 0; i < tensor.parts.size();) {
    const PartList::Part& part = tensor.parts[i];
    std::optional<Overlap> found;
    list.ForEachOverlap(tensor, part.box(), [&](std::span<const PartList::Part> replicas) {
      if (&replicas.front() == &part) return true;
      found = Overlap{&part, &replicas.front()};
      return false;
    });
    if (found) return found;
    i += PartList::ReplicasAt(tensor, i).size();
  }
  return std::nullopt;
}

}  // namespace

std::optional<Box> FirstHole(const Box& whole, const std::vector<Box>& boxes) {
  if (whole.empty()) return std::nullopt;
  std::vector<const Box*> all;
  for (const Box& box : boxes) {
    if (!box.empty()) all.push_back(&box);
  }
  Box hole = whole;
  if (!FindHole(whole, 0, std::move(all), hole)) return std::nullopt;
  return hole;
}

Status CheckCoverage(const PartList& list, const PartList::Tensor& tensor,
                     const std::function<std::string(int64_t rank)>& path_of) {
  const Box whole = Box::Whole(*tensor.full);
  std::vector<Box> boxes;
  for (size_t i = 0; i < tensor.parts.size();) {
    const PartList::Part& part = tensor.parts[i];
    Box box = part.box();
    for (size_t d = 0; d < box.dims(); ++d) {
      const auto end = CheckedAdd(box.begin[d], box.extent[d]);
      if (box.begin[d] >= 0 && box.extent[d] >= 0 && end && *end <= whole.extent[d]) continue;
      return MismatchError(fmt::format("{}: {}: box {} lies outside the full shape {}",
                                       Escape(path_of(part.rank())), Quote(tensor.name),
                                       ToString(box), ToString(*tensor.full)));
    }
    if (!box.empty()) boxes.push_back(std::move(box));
    i += PartList::ReplicasAt(tensor, i).size();
  }
  if (whole.empty() || CoversExactly(whole, boxes)) return {};
  if (const auto overlap = FindOverlap(list, tensor)) {
    return MismatchError(fmt::format(
        "{}: {}: box {} overlaps box {} of {}; do the files come from one save? Remove those of "
        "an older one",
        Escape(path_of(overlap->first->rank())), Quote(tensor.name),
        ToString(overlap->first->box()), ToString(overlap->second->box()),
        Escape(path_of(overlap->second->rank()))));
  }
  uint64_t held = 0;
  for (const Box& box : boxes) held += Volume(box);
  const uint64_t all = Volume(whole);
  return MismatchError(fmt::format(
      "{}: {} of {} elements are in no file; the first are box {} of the full shape {}. Complete "
      "the files, or leave it out with `exclude`",
      Quote(tensor.name), all - held, all, ToString(FirstHole(whole, boxes).value_or(whole)),
      ToString(*tensor.full)));
}

}  // namespace reshard
