// NameArena: names side by side in a few blocks of memory, at fixed addresses.
//
// Copies share the blocks. Not thread-safe while it is filled; then any number of threads may read
// it.
#ifndef RESHARD_SRC_BASE_NAME_ARENA_H_
#define RESHARD_SRC_BASE_NAME_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace reshard {

class NameArena {
 public:
  // Returns a copy of `name` that lives as long as the arena, or one that it is copied to.
  std::string_view Keep(std::string_view name) {
    constexpr size_t kLeastBlock = 256;
    constexpr size_t kMostBlock = size_t{64} << 10;
    // Names are not added to a block that a copy also refers to.
    if (blocks_.empty() || blocks_.back().use_count() > 1 || block_bytes_ - used_ < name.size()) {
      const size_t bytes =
          std::max(name.size(), std::clamp(2 * block_bytes_, kLeastBlock, kMostBlock));
      blocks_.push_back(std::make_shared_for_overwrite<char[]>(bytes));
      block_bytes_ = bytes;
      memory_ += block_bytes_ + kBlockCost;
      used_ = 0;
    }
    char* const place = blocks_.back().get() + used_;
    std::copy(name.begin(), name.end(), place);
    used_ += name.size();
    return {place, name.size()};
  }

  // Forgets all names. Keeps some of the memory for new names.
  void Clear() {
    if (blocks_.empty()) return;
    blocks_.erase(blocks_.begin(), blocks_.end() - 1);
    memory_ = block_bytes_ + kBlockCost;
    used_ = 0;
  }

  // About the bytes of memory that it takes.
  size_t memory() const { return memory_ + blocks_.capacity() * sizeof(blocks_[0]); }

 private:
  static constexpr size_t kBlockCost = 64;  // the allocator's, and the count of users

  std::vector<std::shared_ptr<char[]>> blocks_;
  size_t block_bytes_ = 0;  // of the last one
  size_t used_ = 0;         // of these
  size_t memory_ = 0;
};

}  // namespace reshard

#endif  // RESHARD_SRC_BASE_NAME_ARENA_H_
