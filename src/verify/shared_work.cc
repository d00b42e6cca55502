#include "src/verify/shared_work.h"

#include <algorithm>
#include <vector>

#include "src/os/threads.h"

namespace reshard {

Status ForEachPiece(std::span<const uint64_t> sizes, uint64_t piece_bytes, const SharedWork& work,
                    const PieceTask& task) {
  std::vector<uint64_t> ends;  // the number of the piece behind the last one of each thing
  uint64_t count = 0;
  for (const uint64_t size : sizes) {
    count += size / piece_bytes + (size % piece_bytes == 0 ? 0 : 1);
    ends.push_back(count);
  }
  const auto do_piece = [&](size_t number, const std::stop_token& stop) {
    const auto end = std::upper_bound(ends.begin(), ends.end(), number);
    const auto index = static_cast<size_t>(end - ends.begin());
    const uint64_t offset = (number - (index == 0 ? 0 : ends[index - 1])) * piece_bytes;
    return task(index, {offset, std::min(piece_bytes, sizes[index] - offset)}, stop);
  };
  return RunWorkers(work.workers, count, do_piece, work.stop);
}

}  // namespace reshard
