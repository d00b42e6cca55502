#include "src/full/packing.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace reshard {

Packing PackUnified(std::span<const uint64_t> bytes, uint64_t most_bytes) {
  const uint64_t total = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  const uint64_t filled = total / most_bytes + (total % most_bytes == 0 ? 0 : 1);
  Packing files(std::clamp<uint64_t>(filled, 1, std::max<size_t>(bytes.size(), 1)));
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  using Room = std::pair<uint64_t, size_t>;  // bytes so far, file
  std::priority_queue<Room, std::vector<Room>, std::greater<>> rooms;
  for (size_t file = 0; file < files.size(); ++file) rooms.emplace(0, file);
  for (const size_t tensor : order) {
    const auto [held, file] = rooms.top();
    rooms.pop();
    files[file].push_back(tensor);
    rooms.emplace(held + bytes[tensor], file);
  }
  return files;
}

Packing PackHuggingFace(std::span<const uint64_t> bytes, uint64_t most_bytes) {
  Packing files;
  std::vector<size_t> current;
  uint64_t held = 0;
  for (size_t tensor = 0; tensor < bytes.size(); ++tensor) {
    if (bytes[tensor] > most_bytes) {
      files.push_back({tensor});
      continue;
    }
    if (bytes[tensor] > most_bytes - held) {
      files.push_back(std::exchange(current, {}));
      held = 0;
    }
    current.push_back(tensor);
    held += bytes[tensor];
  }
  if (!current.empty()) files.push_back(std::move(current));
  return files;
}

}  // namespace reshard
