#include "format/container/file_table.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <utility>

namespace reshard {
namespace {

uint64_t NextTableId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

size_t HashOf(const std::vector<StoredArray>& arrays) {
  constexpr size_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio: spreads the bits
  size_t hash = arrays.size();
  for (const StoredArray& array : arrays) {
    hash = (hash ^ std::hash<std::string_view>()(array.name)) * kMultiplier;
    const uint64_t offset = array.framed.empty() ? 0 : array.framed.front().offset;
    hash = (hash ^ array.bytes ^ offset) * kMultiplier;
  }
  return hash;
}

}  // namespace

std::vector<uint32_t> SortByName(const std::vector<StoredArray>& arrays) {
  std::vector<uint32_t> by_name(arrays.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  std::stable_sort(by_name.begin(), by_name.end(),
                   [&arrays](uint32_t a, uint32_t b) { return arrays[a].name < arrays[b].name; });
  return by_name;
}

FileTable::FileTable(Container container, std::vector<StoredArray> arrays,
                     std::vector<uint32_t> by_name, size_t memory)
    : id_(NextTableId()),
      container_(container),
      arrays_(std::move(arrays)),
      by_name_(std::move(by_name)),
      memory_(sizeof(FileTable) + memory),
      hash_(HashOf(arrays_)) {}

const StoredArray* FileTable::Find(std::string_view name) const {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](uint32_t i, std::string_view wanted) { return arrays_[i].name < wanted; });
  if (place == by_name_.end() || arrays_[*place].name != name) return nullptr;
  return &arrays_[*place];
}

const StoredArray* FileTable::Find(std::string_view name, size_t& next) const {
  const StoredArray* const found =
      next < arrays_.size() && arrays_[next].name == name ? &arrays_[next] : Find(name);
  if (found != nullptr) next = static_cast<size_t>(found - arrays_.data()) + 1;
  return found;
}

}  // namespace reshard
