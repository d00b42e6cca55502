// What a conversion may take of the memory, and for what.
//
// Everything that a run holds counts: anonymous memory, the pages of sources that it brings into
// the page cache, and those of targets on their way to the disk. Plain values; any thread.
#ifndef RESHARD_SRC_API_MEMORY_BUDGET_H_
#define RESHARD_SRC_API_MEMORY_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "reshard/convert.h"
#include "reshard/status.h"

namespace reshard {

// The least limit that a conversion works with; models of very many parameters need more.
inline constexpr uint64_t kLeastMemoryLimit = uint64_t{28} << 20;

struct MemoryBudget {
  uint64_t limit = 0;
  bool asked_for = false;         // the limit, not a default
  size_t lanes = 1;               // at most as many as are asked for
  uint64_t chunk_bytes = 0;       // a lane has two
  uint64_t window_bytes = 0;      // source windows and what is read ahead
  uint64_t write_back_bytes = 0;  // target pages on their way to the disk
  uint64_t index_bytes = 0;
  uint64_t plan_bytes = 0;  // plans of the files that are open at a time
};

// Divides `limit` bytes for a run of `lanes`. 0 stands for 256 MiB, or a quarter of the memory that
// there is when that is less, but never less than works. Where it is short there are fewer lanes.
// Errors: kInvalidArgument for less than works.
Result<MemoryBudget> DivideMemory(uint64_t limit, size_t lanes);

// Returns how many files may be open at a time, one at least.
size_t MaxGroup(const MemoryBudget& budget, const PlanReport& plan);

// Returns about the bytes of the budget that a run of `plan` holds at the most. `index_bytes` is
// what the indexes of its sources take.
uint64_t PlannedPeak(const MemoryBudget& budget, const PlanReport& plan, uint64_t index_bytes);

// Returns ok unless that is more than a limit that was asked for: a plan, which is held whole, may
// have very many copies. Errors: kResourceExhausted.
Status CheckFits(const MemoryBudget& budget, const PlanReport& plan, uint64_t index_bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_API_MEMORY_BUDGET_H_
