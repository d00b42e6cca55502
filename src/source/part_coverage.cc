#include "src/source/part_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
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

// Finds the first hole among boxes that do not fill a whole.
class HoleSearch {
 public:
  HoleSearch(const Box& whole, size_t boxes) : whole_(whole), steps_(MostBoxSteps(boxes)) {}

  // Searches boxes that cover all of the hole's dimensions before `d`, and sets the hole from `d`
  // on. Returns whether there is one; false, too, if that takes too many steps.
  bool Find(size_t d, std::vector<const Box*> boxes) {
    if (boxes.empty()) {
      for (size_t i = d; i < whole_.dims(); ++i) {
        hole_.begin[i] = whole_.begin[i];
        hole_.extent[i] = whole_.extent[i];
      }
      return true;
    }
    if (d == whole_.dims() || !Take(boxes.size() * std::bit_width(boxes.size()))) return false;
    std::vector<int64_t> edges = {whole_.begin[d], EndOf(whole_, d)};
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
      if (!Take(active.size() + 1)) return false;
      if (!Find(d + 1, active)) continue;
      hole_.begin[d] = edges[i];
      hole_.extent[d] = edges[i + 1] - edges[i];
      return true;
    }
    return false;
  }

  const Box& hole() const { return hole_; }

 private:
  // Counts steps. Returns false if none are left.
  bool Take(uint64_t steps) {
    steps_ -= std::min(steps, steps_);
    return steps_ > 0;
  }

  const Box& whole_;
  Box hole_ = whole_;
  uint64_t steps_;  // that are left
};

// Two parts that share elements and are no replicas.
struct Overlap {
  const PartList::Part* first = nullptr;
  const PartList::Part* second = nullptr;
};

// Returns the first overlap that is found in MostBoxSteps.
std::optional<Overlap> FindOverlap(const PartList& list, const PartList::Tensor& tensor) {
  uint64_t steps = 0;
  const uint64_t most = MostBoxSteps(tensor.parts.size());
  for (size_t i = 0; i < tensor.parts.size() && steps < most;) {
    const PartList::Part& part = tensor.parts[i];
    std::optional<Overlap> found;
    steps += list.ForEachOverlap(tensor, part.box(), [&](std::span<const PartList::Part> replicas) {
      if (&replicas.front() == &part) return true;
      found = Overlap{&part, &replicas.front()};
      return false;
    });
    if (found) return found;
    i += PartList::ReplicasAt(tensor, i).size();
  }
  return std::nullopt;
}

// The error of boxes that are not proved to be `whole`, and among which FindOverlap found nothing.
Status NotWhole(const PartList::Tensor& tensor, const Box& whole, const std::vector<Box>& boxes) {
  const uint64_t all = Volume(whole);
  uint64_t held = 0;
  for (const Box& box : boxes) held += std::min(Volume(box), all - held);
  if (held == all) {
    return ResourceExhaustedError(fmt::format(
        "{}: its {} boxes interlock, and {} steps do not suffice to prove that they are the full "
        "shape {}; save it with tensors that are cut as a grid, or leave it out with `exclude`",
        Quote(tensor.name), boxes.size(), MostBoxSteps(boxes.size()), ToString(*tensor.full)));
  }
  const std::optional<Box> hole = FirstHole(whole, boxes);
  const std::string first = hole ? fmt::format("; the first are box {}", ToString(*hole)) : "";
  return MismatchError(fmt::format(
      "{}: {} of {} elements are in no file{} of the full shape {}. Complete the files, or leave "
      "it out with `exclude`",
      Quote(tensor.name), all - held, all, first, ToString(*tensor.full)));
}

}  // namespace

std::optional<Box> FirstHole(const Box& whole, const std::vector<Box>& boxes) {
  if (whole.empty()) return std::nullopt;
  std::vector<const Box*> all;
  for (const Box& box : boxes) {
    if (!box.empty()) all.push_back(&box);
  }
  HoleSearch search(whole, boxes.size());
  if (!search.Find(0, std::move(all))) return std::nullopt;
  return search.hole();
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
  return NotWhole(tensor, whole, boxes);
}

}  // namespace reshard
