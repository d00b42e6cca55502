#include "tools/cli/near_names.h"

#include <algorithm>
#include <numeric>

namespace reshard {
namespace {

// Names may come out of a file; the time that a distance takes grows with the product.
constexpr size_t kLongestName = 1000;

size_t MostEdits(size_t length) {
  if (length < 2) return 0;
  return length <= 3 ? 1 : std::max<size_t>(2, length / 3);
}

}  // namespace

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances of the beginnings of b
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[b.size()];
}

std::string NearestName(std::string_view typed, const std::vector<std::string>& names) {
  std::string nearest;
  if (typed.size() > kLongestName) return nearest;
  size_t within = MostEdits(typed.size()) + 1;
  for (const std::string& name : names) {
    if (name.size() > typed.size() + within || typed.size() > name.size() + within) continue;
    const size_t distance = EditDistance(typed, name);
    if (distance >= within) continue;
    within = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace reshard
