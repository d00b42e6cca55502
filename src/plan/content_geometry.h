// ContentGeometry: the places of a content and of its source shards in the full tensor.
//
// All numbers are in one allocation, because plans of very many parameters consist of little else.
// A plain value.
#ifndef RESHARD_SRC_PLAN_CONTENT_GEOMETRY_H_
#define RESHARD_SRC_PLAN_CONTENT_GEOMETRY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reshard/tensor.h"
#include "src/tensor/block_copy.h"

namespace reshard {

class ContentGeometry {
 public:
  ContentGeometry() = default;
  // `box` belongs to the whole parameter on the target rank, in elements. `shards` are the sources
  // of the copies, one for each copy, placed in their files.
  ContentGeometry(const Shape& full_shape, const Box& box, const std::vector<PlacedBox>& shards);

  // The tensor's shape and the target's box, in elements, and the shard that a copy reads from, in
  // bytes. Of this object, as long as it lives.
  std::span<const int64_t> full_shape() const { return Numbers(kCounts, dims()); }
  std::span<const int64_t> target_begin() const { return Numbers(kCounts + dims(), dims()); }
  std::span<const int64_t> target_extent() const { return Numbers(kCounts + 2 * dims(), dims()); }
  PlacedBoxView shard(size_t copy) const;
  // Moves all shards in their files.
  void MoveShards(int64_t bytes);

  size_t capacity() const { return numbers_.capacity(); }

 private:
  static constexpr size_t kCounts = 2;  // numbers before the shape

  size_t dims() const { return numbers_.empty() ? 0 : static_cast<size_t>(numbers_[0]); }
  std::span<const int64_t> Numbers(size_t first, size_t count) const {
    return std::span(numbers_).subspan(count == 0 ? 0 : first, count);
  }

  // The dims of the tensor and of a shard in bytes; shape, begin and extent of the box; for each
  // shard begin, extent and offset.
  std::vector<int64_t> numbers_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_PLAN_CONTENT_GEOMETRY_H_
