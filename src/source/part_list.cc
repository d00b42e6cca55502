#include "src/source/part_list.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace reshard {
namespace {

// So many parts, or boxes around parts, have a box around them.
constexpr size_t kFan = 16;

// Boxes around `width` parts each, `count` in all.
struct Level {
  size_t width = 0;
  size_t count = 0;
  size_t before = 0;  // boxes of the levels below
};

// Returns the levels above `parts` parts, the lowest first.
std::vector<Level> LevelsAbove(size_t parts) {
  std::vector<Level> levels;
  size_t width = 1;
  size_t before = 0;
  for (size_t below = parts; below > kFan; below = levels.back().count) {
    width *= kFan;
    levels.push_back({width, (below + kFan - 1) / kFan, before});
    before += levels.back().count;
  }
  return levels;
}

// Whether a box between the two numbers of each dimension shares elements with `box`, which has
// some.
bool Meets(const int64_t* begin, const int64_t* end, const Box& box) {
  for (size_t d = 0; d < box.dims(); ++d) {
    if (begin[d] >= box.begin[d] + box.extent[d] || box.begin[d] >= end[d]) return false;
  }
  return true;
}

bool Meets(const int64_t* begin, const Shape& extent, const Box& box) {
  for (size_t d = 0; d < box.dims(); ++d) {
    if (extent[d] == 0 || begin[d] >= box.begin[d] + box.extent[d] ||
        box.begin[d] >= begin[d] + extent[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

const PartList::Tensor* PartList::Find(std::string_view name) const {
  const auto place = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const Tensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return place == tensors_.end() || place->name != name ? nullptr : &*place;
}

std::span<const PartList::Part> PartList::ReplicasAt(const Tensor& tensor, size_t part) {
  const Part& first = tensor.parts[part];
  size_t end = part + 1;
  while (end < tensor.parts.size() && tensor.parts[end].extent_ == first.extent_ &&
         std::equal(first.begin_, first.begin_ + first.extent_->size(), tensor.parts[end].begin_)) {
    ++end;
  }
  return tensor.parts.subspan(part, end - part);
}

uint64_t PartList::ForEachOverlap(const Tensor& tensor, const Box& box,
                                  const Visitor& visit) const {
  if (box.empty()) return 0;
  uint64_t seen = 0;
  const size_t dims = box.dims();
  const std::vector<Level> levels = LevelsAbove(tensor.parts.size());
  const int64_t* const bounds = bounds_.data() + tensor.bounds;
  // Returns how many parts from `part` on can be skipped, as the box around them does not overlap.
  const auto misses = [&](size_t part) -> size_t {
    for (size_t i = levels.size(); i-- > 0;) {
      const auto& [width, count, before] = levels[i];
      if (part % width != 0) continue;
      ++seen;
      const int64_t* const begin = bounds + (before + part / width) * 2 * dims;
      if (!Meets(begin, begin + dims, box)) return width;
    }
    return 0;
  };
  for (size_t part = 0; part < tensor.parts.size();) {
    if (const size_t missed = part % kFan == 0 ? misses(part) : 0) {
      part += missed;
      continue;
    }
    ++seen;
    if (!Meets(tensor.parts[part].begin_, *tensor.parts[part].extent_, box)) {
      ++part;
      continue;
    }
    const std::span<const Part> replicas = ReplicasAt(tensor, part);
    if (!visit(replicas)) return seen;
    part += replicas.size();
  }
  return seen;
}

void PartList::AddBounds(Tensor& tensor) {
  tensor.bounds = bounds_.size();
  const size_t dims = tensor.full->size();
  for (const Level& level : LevelsAbove(tensor.parts.size())) {
    for (size_t box = 0; box < level.count; ++box) {
      const size_t place = bounds_.size();
      bounds_.resize(place + dims, std::numeric_limits<int64_t>::max());
      bounds_.resize(place + 2 * dims, std::numeric_limits<int64_t>::min());
      const size_t first = box * level.width;
      for (size_t i = first; i < std::min(first + level.width, tensor.parts.size()); ++i) {
        const Part& part = tensor.parts[i];
        for (size_t d = 0; d < dims; ++d) {
          int64_t& begin = bounds_[place + d];
          int64_t& end = bounds_[place + dims + d];
          begin = std::min(begin, part.begin_[d]);
          end = std::max(end, part.begin_[d] + (*part.extent_)[d]);
        }
      }
    }
  }
}

size_t PartListBuilder::AddTensor(std::string_view name, const Shape& full,
                                  std::optional<DType> dtype) {
  list_.tensors_.push_back({list_.names_.Keep(name), dtype, Keep(full), {}, 0});
  return list_.tensors_.size() - 1;
}

void PartListBuilder::AddPart(size_t tensor, const Box& box, const Shape& shape,
                              const ArrayPlace& place) {
  const std::string_view of_tensor = list_.tensors_[tensor].name;
  const std::string_view array =
      place.array == of_tensor ? of_tensor : list_.names_.Keep(place.array);
  PartList::Part& part = list_.parts_.emplace_back();
  part.begin_ = list_.begins_.Keep(box.begin).data();
  part.extent_ = Keep(box.extent);
  part.shape_ = shape == box.extent ? part.extent_ : Keep(shape);
  part.array_ = array.data();
  part.array_bytes_ = static_cast<uint32_t>(array.size());
  part.tensor_ = static_cast<uint32_t>(tensor);
  part.rank_ = place.rank;
}

PartList PartListBuilder::Finish() && {
  std::vector<PartList::Tensor>& tensors = list_.tensors_;
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  std::vector<uint32_t> number(order.size());  // that a tensor is going to have
  for (uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });

  std::vector<PartList::Part>& parts = list_.parts_;
  for (PartList::Part& part : parts) part.tensor_ = number[part.tensor_];
  std::sort(parts.begin(), parts.end(), [](const PartList::Part& a, const PartList::Part& b) {
    if (a.tensor_ != b.tensor_) return a.tensor_ < b.tensor_;
    const auto begins = std::lexicographical_compare_three_way(
        a.begin_, a.begin_ + a.extent_->size(), b.begin_, b.begin_ + b.extent_->size());
    if (begins != 0) return begins < 0;
    if (a.extent_ != b.extent_) return *a.extent_ < *b.extent_;
    return a.rank_ < b.rank_;
  });
  size_t begin = 0;
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    size_t end = begin;
    while (end < parts.size() && parts[end].tensor_ == i) ++end;
    tensors[i].parts = std::span(parts).subspan(begin, end - begin);
    list_.AddBounds(tensors[i]);
    begin = end;
  }
  return std::move(list_);
}

}  // namespace reshard
