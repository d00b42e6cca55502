#include "reshard/box.h"

#include <algorithm>
#include <cassert>

#include "src/base/checked.h"

namespace reshard {

std::optional<uint64_t> ElementCount(const Shape& shape) {
  uint64_t count = 1;
  bool zero = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      zero = true;
      continue;
    }
    const auto product = CheckedMul(count, static_cast<uint64_t>(size));
    if (!product) return std::nullopt;
    count = *product;
  }
  return zero ? 0 : count;
}

std::string ToString(const Shape& shape) {
  std::string out = "[";
  for (const int64_t size : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(size);
  }
  return out + "]";
}

Box Box::Whole(const Shape& shape) { return {std::vector<int64_t>(shape.size(), 0), shape}; }

bool Box::empty() const {
  return std::any_of(extent.begin(), extent.end(), [](int64_t e) { return e <= 0; });
}

uint64_t Volume(const Box& box) {
  uint64_t volume = 1;
  for (const int64_t e : box.extent) volume *= static_cast<uint64_t>(e);
  return volume;
}

std::optional<Box> Intersect(const Box& a, const Box& b) {
  assert(a.dims() == b.dims());
  Box overlap;
  overlap.begin.reserve(a.dims());
  overlap.extent.reserve(a.dims());
  for (size_t d = 0; d < a.dims(); ++d) {
    const int64_t begin = std::max(a.begin[d], b.begin[d]);
    const int64_t end = std::min(a.begin[d] + a.extent[d], b.begin[d] + b.extent[d]);
    if (begin >= end) return std::nullopt;
    overlap.begin.push_back(begin);
    overlap.extent.push_back(end - begin);
  }
  return overlap;
}

std::string ToString(const Box& box) {
  std::string out = "[";
  for (size_t d = 0; d < box.dims(); ++d) {
    if (d != 0) out += ", ";
    const auto end = CheckedAdd(box.begin[d], box.extent[d]);
    out += std::to_string(box.begin[d]) + ":" + (end ? std::to_string(*end) : "beyond 2^63");
  }
  return out + "]";
}

}  // namespace reshard
