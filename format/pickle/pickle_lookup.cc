#include "format/pickle/pickle_lookup.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>

namespace reshard {
namespace {

constexpr size_t kLongestKey = 64;
// Keys and values of a dict that is gone through each time.
constexpr size_t kFewItems = 32;

}  // namespace

const PickleValue* PickleLookup::Find(const PickleValue& dict, std::string_view key) {
  const std::span<const PickleValue> items = pickle_.Items(dict);
  if (items.size() <= kFewItems) return pickle_.Find(dict, key);
  const auto [place, is_new] = sorted_.try_emplace(dict.data);
  std::vector<uint32_t>& keys = place->second;
  const auto text = [&](uint32_t i) { return pickle_.Text(items[i]); };
  if (is_new) {
    for (uint32_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].kind == PickleKind::kText && items[i].length <= kLongestKey) keys.push_back(i);
    }
    std::sort(keys.begin(), keys.end(), [&](uint32_t a, uint32_t b) {
      return std::tuple(text(a), b) < std::tuple(text(b), a);
    });
  }
  const auto found =
      std::lower_bound(keys.begin(), keys.end(), key,
                       [&](uint32_t i, std::string_view wanted) { return text(i) < wanted; });
  return found == keys.end() || text(*found) != key ? nullptr : &items[*found + 1];
}

}  // namespace reshard
