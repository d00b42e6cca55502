// The lanes that write target files, as many and as large as a budget and the files make useful.
//
// Pure; any thread.
#ifndef RESHARD_SRC_CONVERT_BUDGETED_LANES_H_
#define RESHARD_SRC_CONVERT_BUDGETED_LANES_H_

#include <cstdint>
#include <span>

#include "src/convert/memory_budget.h"
#include "src/os/storage_kind.h"
#include "src/write/part_writer.h"

namespace reshard {

// Returns the lanes that have something to do when parts of these lengths are written to `storage`,
// with chunks no larger than the parts.
LaneOptions LanesFor(const MemoryBudget& budget, StorageKind storage,
                     std::span<const uint64_t> parts);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_BUDGETED_LANES_H_
