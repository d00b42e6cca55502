#include "src/source/file_table.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

namespace reshard {
namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

FileTable::FileTable(ParameterGrouping grouping)
    : id_(NextId()),
      parameters_(std::move(grouping.parameters())),
      by_name_(std::move(grouping.by_name())),
      memory_(sizeof(FileTable) + grouping.memory()) {}

const StoredArray* FileTable::Find(std::string_view name) const {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](uint32_t i, std::string_view wanted) { return parameters_[i].name < wanted; });
  if (place == by_name_.end() || parameters_[*place].name != name) return nullptr;
  return &parameters_[*place];
}

size_t FileTable::Hash() const {
  constexpr size_t kMultiplier = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio: spreads the bits
  size_t hash = parameters_.size();
  for (const StoredArray& parameter : parameters_) {
    hash = (hash ^ std::hash<std::string_view>()(parameter.name)) * kMultiplier;
    hash = (hash ^ parameter.bytes ^ parameter.framed.front().offset) * kMultiplier;
  }
  return hash;
}

}  // namespace reshard
