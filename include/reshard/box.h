// Shape and Box: where a shard lies in the full tensor.
//
// Both count elements, slowest dimension first (row-major). Plain values; no locking.
//
// Implemented in src/tensor.
#ifndef RESHARD_BOX_H_
#define RESHARD_BOX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reshard {

// The sizes of a tensor's dimensions; empty for a scalar. No size is negative.
using Shape = std::vector<int64_t>;

// The most dimensions that a tensor may have.
inline constexpr size_t kMaxDims = 64;

// Returns the number of elements (1 for a scalar), or nothing when a size is negative or a partial
// product does not fit, even if a later size is 0.
std::optional<uint64_t> ElementCount(const Shape& shape);

// Returns "[2, 3]".
std::string ToString(const Shape& shape);

// The elements with begin[d] <= index[d] < begin[d] + extent[d] in each dimension d of a tensor.
struct Box {
  std::vector<int64_t> begin;
  std::vector<int64_t> extent;

  // The box of a whole tensor.
  static Box Whole(const Shape& shape);

  size_t dims() const { return begin.size(); }
  bool empty() const;
  friend bool operator==(const Box&, const Box&) = default;
};

// Returns the number of elements of a box that lies in a tensor whose ElementCount is known to fit.
uint64_t Volume(const Box& box);

// Returns the elements that lie in both boxes, which have equally many dims, or nothing where there
// are none.
std::optional<Box> Intersect(const Box& a, const Box& b);

// Returns "[0:2, 4:8]".
std::string ToString(const Box& box);

}  // namespace reshard

#endif  // RESHARD_BOX_H_
