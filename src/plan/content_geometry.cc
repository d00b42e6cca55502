#include "src/plan/content_geometry.h"

namespace reshard {

ContentGeometry::ContentGeometry(const Shape& full_shape, const Box& box,
                                 const std::vector<PlacedBox>& shards) {
  const size_t of_shard = shards.empty() ? 0 : shards.front().box.dims();
  numbers_.reserve(kCounts + 3 * full_shape.size() + shards.size() * (2 * of_shard + 1));
  const auto add = [this](const std::vector<int64_t>& more) {
    numbers_.insert(numbers_.end(), more.begin(), more.end());
  };
  add({static_cast<int64_t>(full_shape.size()), static_cast<int64_t>(of_shard)});
  add(full_shape);
  add(box.begin);
  add(box.extent);
  for (const PlacedBox& shard : shards) {
    add(shard.box.begin);
    add(shard.box.extent);
    numbers_.push_back(shard.offset);
  }
}

void ContentGeometry::MoveShards(int64_t bytes) {
  const size_t of_shard = 2 * static_cast<size_t>(numbers_[1]) + 1;
  for (size_t end = kCounts + 3 * dims() + of_shard; end <= numbers_.size(); end += of_shard) {
    numbers_[end - 1] += bytes;
  }
}

PlacedBoxView ContentGeometry::shard(size_t copy) const {
  const auto of_shard = static_cast<size_t>(numbers_[1]);
  const size_t first = kCounts + 3 * dims() + copy * (2 * of_shard + 1);
  return {Numbers(first, of_shard), Numbers(first + of_shard, of_shard),
          numbers_[first + 2 * of_shard]};
}

}  // namespace reshard
