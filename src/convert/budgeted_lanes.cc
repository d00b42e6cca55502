#include "src/convert/budgeted_lanes.h"

#include <algorithm>

#include "src/os/staged_file.h"

namespace reshard {

LaneOptions LanesFor(const MemoryBudget& budget, StorageKind storage,
                     std::span<const uint64_t> parts) {
  LaneOptions lanes;
  uint64_t chunks = 0;
  uint64_t largest = 0;
  for (const uint64_t length : parts) {
    chunks += length / budget.chunk_bytes + 1;
    largest = std::max(largest, length);
  }
  lanes.lanes = std::min<uint64_t>(budget.lanes, chunks);
  lanes.writer_threads = storage != StorageKind::kMemory && chunks > lanes.lanes;
  lanes.chunk_bytes = std::min(
      budget.chunk_bytes, (largest + StagedFile::kAlignment - 1) & ~(StagedFile::kAlignment - 1));
  lanes.chunk_bytes = std::max<uint64_t>(lanes.chunk_bytes, StagedFile::kAlignment);
  lanes.window_bytes = budget.window_bytes;
  return lanes;
}

}  // namespace reshard
