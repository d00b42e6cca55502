#include "reshard/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <utility>

#include "src/base/checked.h"
#include "src/tensor/byte_box.h"

namespace reshard {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  uint64_t item_bytes;
};

// In the order of the enumeration, so that a dtype is its own row number.
constexpr std::array<DTypeRow, 26> kDTypeRows = {{
    {DType::kInt8, "Int8", 1},
    {DType::kUInt8, "UInt8", 1},
    {DType::kInt16, "Int16", 2},
    {DType::kUInt16, "UInt16", 2},
    {DType::kInt32, "Int32", 4},
    {DType::kUInt32, "UInt32", 4},
    {DType::kInt64, "Int64", 8},
    {DType::kUInt64, "UInt64", 8},
    {DType::kFloat16, "Float16", 2},
    {DType::kFloat32, "Float32", 4},
    {DType::kFloat64, "Float64", 8},
    {DType::kBFloat16, "BFloat16", 2},
    {DType::kBool, "Bool", 1},
    {DType::kComplex64, "Complex64", 8},
    {DType::kComplex128, "Complex128", 16},
    {DType::kInt4, "Int4", 1},
    {DType::kFloat8E4M3FN, "Float8E4M3FN", 1},
    {DType::kFloat8E5M2, "Float8E5M2", 1},
    {DType::kHiFloat8, "HiFloat8", 1},
    {DType::kString, "str", 4},
    {DType::kFloat8E8M0, "Float8E8M0", 1},
    {DType::kFloat8E4M3FNUZ, "Float8E4M3FNUZ", 1},
    {DType::kFloat8E5M2FNUZ, "Float8E5M2FNUZ", 1},
    {DType::kFloat6E2M3, "Float6E2M3", 3},
    {DType::kFloat6E3M2, "Float6E3M2", 3},
    {DType::kFloat4E2M1, "Float4E2M1", 1},
}};

constexpr bool RowsAreInOrder() {
  for (size_t i = 0; i < kDTypeRows.size(); ++i) {
    if (static_cast<size_t>(kDTypeRows[i].dtype) != i) return false;
  }
  return true;
}
static_assert(RowsAreInOrder());

int64_t Signed(uint64_t n) { return static_cast<int64_t>(n); }
uint64_t ToUnsigned(int64_t n) { return static_cast<uint64_t>(n); }

// Appends the boxes of bytes [begin, end) of the sub-box that `fixed` describes: dimensions before
// `dim` are fixed to one index, those from `dim` on are whole.
void AppendBoxes(const Box& fixed, size_t dim, uint64_t begin, uint64_t end,
                 std::vector<Box>& out) {
  if (begin == end) return;
  uint64_t inner = 1;  // bytes for each index of `dim`
  for (size_t d = dim + 1; d < fixed.dims(); ++d) inner *= ToUnsigned(fixed.extent[d]);
  const auto slab = [&](uint64_t first, uint64_t count) {
    Box box = fixed;
    box.begin[dim] += Signed(first);
    box.extent[dim] = Signed(count);
    return box;
  };
  const uint64_t first_whole = (begin + inner - 1) / inner;
  const uint64_t end_whole = end / inner;
  if (first_whole > end_whole) {  // inside one index
    AppendBoxes(slab(end_whole, 1), dim + 1, begin - end_whole * inner, end - end_whole * inner,
                out);
    return;
  }
  if (begin != first_whole * inner) {
    const uint64_t index = first_whole - 1;
    AppendBoxes(slab(index, 1), dim + 1, begin - index * inner, inner, out);
  }
  if (first_whole != end_whole) out.push_back(slab(first_whole, end_whole - first_whole));
  if (end != end_whole * inner) {
    AppendBoxes(slab(end_whole, 1), dim + 1, 0, end - end_whole * inner, out);
  }
}

bool Contains(const Box& whole, const Box& part) {
  for (size_t d = 0; d < whole.dims(); ++d) {
    if (part.begin[d] < whole.begin[d] ||
        part.begin[d] + part.extent[d] > whole.begin[d] + whole.extent[d]) {
      return false;
    }
  }
  return true;
}

// A group of boxes that no cut has separated so far: boxes [begin, end), to be examined along
// `dim`. `stuck` counts the last dimensions that did not separate any boxes.
struct Group {
  size_t begin = 0;
  size_t end = 0;
  size_t dim = 0;
  size_t stuck = 0;
};

bool ShareElements(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.dims(); ++d) {
    if (a.begin[d] >= b.begin[d] + b.extent[d] || b.begin[d] >= a.begin[d] + a.extent[d]) {
      return false;
    }
  }
  return true;
}

// Compares pairs. Each takes a step. Returns false, too, if there are too few steps.
bool PairwiseDisjoint(const std::vector<const Box*>& boxes, const Group& group, uint64_t& steps) {
  for (size_t i = group.begin; i < group.end; ++i) {
    for (size_t j = i + 1; j < group.end; ++j) {
      if (steps-- == 0 || ShareElements(*boxes[i], *boxes[j])) return false;
    }
  }
  return true;
}

// Splits the boxes into groups whose intervals in one dimension do not touch, and examines each
// group along the next dimension. Two boxes overlap only if no dimension separates them. Boxes that
// are not separated by any dimension are compared in pairs. Returns false, too, if that takes more
// than MostBoxSteps.
bool Disjoint(std::vector<const Box*> boxes) {
  uint64_t steps = MostBoxSteps(boxes.size());
  std::vector<Group> groups = {{0, boxes.size(), 0, 0}};
  while (!groups.empty()) {
    const Group group = groups.back();
    groups.pop_back();
    if (group.end - group.begin < 2) continue;
    const size_t dims = boxes[group.begin]->dims();
    if (group.stuck == dims) {
      if (!PairwiseDisjoint(boxes, group, steps)) return false;
      continue;
    }
    const size_t size = group.end - group.begin;
    const uint64_t sorting = size * std::bit_width(size);
    if (steps < sorting) return false;
    steps -= sorting;
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

inline namespace v0_1 {

std::string_view DTypeName(DType dtype) { return kDTypeRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeRow& row : kDTypeRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

uint64_t ElementsOfItem(DType dtype) {
  switch (dtype) {
    case DType::kFloat4E2M1:
      return 2;
    case DType::kFloat6E2M3:
    case DType::kFloat6E3M2:
      return 4;
    default:
      return 1;
  }
}

uint64_t ItemBytes(DType dtype) { return kDTypeRows[static_cast<size_t>(dtype)].item_bytes; }

Shape LogicalShape(ArrayKind kind, DType dtype, const Shape& shape) {
  if (kind == ArrayKind::kText || kind == ArrayKind::kMapTensor) return {};
  Shape sizes = shape;
  // A packed tensor counts elements as it is.
  if (kind == ArrayKind::kTensor && !sizes.empty()) {
    sizes.back() *= static_cast<int64_t>(ElementsOfItem(dtype));
  }
  return sizes;
}

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

bool operator==(const StoredArray& a, const StoredArray& b) {
  const auto equal = [](auto x, auto y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  return a.name == b.name && a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape &&
         a.bytes == b.bytes && equal(a.framed, b.framed) && equal(a.content, b.content) &&
         equal(a.map_tensor, b.map_tensor);
}

std::string ToString(const Shape& shape) {
  std::string out = "[";
  for (const int64_t size : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(size);
  }
  return out + "]";
}

}  // namespace v0_1

Box Box::Whole(const Shape& shape) { return {std::vector<int64_t>(shape.size(), 0), shape}; }

bool Box::empty() const {
  return std::any_of(extent.begin(), extent.end(), [](int64_t e) { return e <= 0; });
}

inline namespace v0_1 {

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

}  // namespace v0_1

std::optional<uint64_t> TensorBytes(std::span<const int64_t> shape, uint64_t item_bytes) {
  int64_t bytes = Signed(item_bytes);
  bool has_zero = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      has_zero = true;
      continue;
    }
    const auto product = CheckedMul(bytes, size);
    if (!product) return std::nullopt;
    bytes = *product;
  }
  return has_zero ? 0 : ToUnsigned(bytes);
}

std::optional<uint64_t> TensorBytes(const Shape& shape, DType dtype) {
  return TensorBytes(shape, ItemBytes(dtype));
}

Shape ToByteShape(Shape shape, DType dtype) {
  if (shape.empty()) return {Signed(ItemBytes(dtype))};
  shape.back() *= Signed(ItemBytes(dtype));
  return shape;
}

Box ToByteBox(Box box, DType dtype) {
  if (box.dims() == 0) return Box::Whole({Signed(ItemBytes(dtype))});
  box.begin.back() *= Signed(ItemBytes(dtype));
  box.extent.back() *= Signed(ItemBytes(dtype));
  return box;
}

uint64_t OffsetInBox(const Box& box, const std::vector<int64_t>& index) {
  assert(index.size() == box.dims());
  uint64_t offset = 0;
  for (size_t d = 0; d < box.dims(); ++d) {
    offset = offset * ToUnsigned(box.extent[d]) + ToUnsigned(index[d] - box.begin[d]);
  }
  return offset;
}

std::vector<Box> BoxesOfRange(const Box& box, ByteRange range) {
  assert(range.end() <= Volume(box));
  std::vector<Box> out;
  if (!box.empty()) AppendBoxes(box, 0, range.offset, range.end(), out);
  return out;
}

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
