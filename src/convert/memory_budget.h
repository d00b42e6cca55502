// The memory limit of a conversion, and its division.
//
// All memory of a run counts: anonymous memory, as it is measured; the pages of sources that it
// brings into the page cache; and pages of targets on their way to the disk. Plain values; any
// thread.
#ifndef RESHARD_SRC_CONVERT_MEMORY_BUDGET_H_
#define RESHARD_SRC_CONVERT_MEMORY_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/base/memory_check.h"
#include "src/base/memory_watch.h"
#include "src/convert/work_list.h"
#include "src/os/memory_usage.h"
#include "src/os/storage_kind.h"
#include "src/write/part_writer.h"

namespace reshard {

// The least limit that a conversion works with; models of very many parameters need more.
inline constexpr uint64_t kLeastMemoryLimit = uint64_t{28} << 20;

// The measurements of a call, from its begin on.
struct MeasuredMemory {
  // Returns the bytes that are held now, pages of sources included, and remembers the most.
  uint64_t Look();
  // Remembers `bytes` that are held, pages included.
  void Note(uint64_t bytes);

  MemoryMeter meter;
  // Bytes of pages of sources, which SourceFiles counts.
  std::shared_ptr<std::atomic<uint64_t>> pages = std::make_shared<std::atomic<uint64_t>>(0);
  std::atomic<bool> planned = false;  // the call has divided the memory that planning left
  std::atomic<bool> refuses = true;   // until files are published
  std::atomic<uint64_t> peak = 0;     // of the noted bytes
};

struct MemoryBudget {
  uint64_t limit = 0;
  bool asked_for = false;     // the limit, not a default
  size_t lanes = 1;           // at most as many as are asked for
  uint64_t chunk_bytes = 0;   // a lane has two
  uint64_t window_bytes = 0;  // source windows and reading ahead
  // Additional bytes while only headers were read: pages beside dense headers, so that reading the
  // contents can use them. 0 if the user set a limit.
  uint64_t header_bytes = 0;
  uint64_t write_back_bytes = 0;  // target pages on their way to the disk
  uint64_t index_bytes = 0;
  uint64_t plan_bytes = 0;  // plans of the files that are open at a time
  // Additional bytes for planned files, so that their plans need not be made again for writing. 0
  // if the user set a limit.
  uint64_t kept_plan_bytes = 0;
  uint64_t planned_peak = 0;  // the most that a run holds, set by DivideRest
  std::shared_ptr<MeasuredMemory> measured = std::make_shared<MeasuredMemory>();
};

// Divides `limit` bytes for a run of `lanes`, before the conversion is known. 0 stands for 256 MiB,
// or a quarter of the memory if that is less, but at least the minimum that works. A small limit
// gives fewer lanes. Errors: kInvalidArgument if the limit is below the minimum.
Result<MemoryBudget> DivideMemory(uint64_t limit, size_t lanes);

// Returns a check that fails with kResourceExhausted if the held memory exceeds a limit that the
// user set, until files are published. For a default limit it only measures.
MemoryCheck CheckOf(const MemoryBudget& budget);

// Returns the check for the MemoryWatch of a call with this budget: CheckOf, if the user set a
// limit.
MemoryCheck WatchOf(const MemoryBudget& budget);

// Divides the rest for the writing of `work`. `held` bytes are held after planning. `headers` more
// bytes are pages as header_bytes counts them; half of the rest may keep such pages. If a default
// limit is too low it is raised: the run takes what it needs, up to a quarter of the host's memory
// if that is enough.
// Errors: kResourceExhausted, naming a limit that is enough.
Result<MemoryBudget> DivideRest(const MemoryBudget& budget, const WorkList& work, uint64_t held,
                                uint64_t headers = 0);

// The memory that planning holds for sources, in bytes.
struct HeldOfSources {
  uint64_t peak = 0;      // the most bytes of pages that were held at a time
  uint64_t headers = 0;   // now, in windows that only headers were read from
  uint64_t buffered = 0;  // now, in anonymous memory, for reading ahead
  uint64_t indexing = 0;  // beyond the memory held now, while files are indexed again
};

// As DivideRest, with the memory held now. Adds a warning to `warnings` if the limit was raised.
Result<MemoryBudget> FitMemory(const MemoryBudget& budget, const HeldOfSources& sources,
                               const WorkList& work, std::vector<Warning>& warnings);

// Returns the budget for targets that are written past the page cache. The memory for their pages
// goes to windows, except for a rest for files that may have to be written otherwise.
MemoryBudget PastPageCache(MemoryBudget budget);

// Returns how many files may be open at a time, one at least, for their plans and at all.
size_t MostOpen(const MemoryBudget& budget, const WorkList& work);
size_t MaxGroup(const MemoryBudget& budget, const WorkList& work);

// Returns the lanes that have work when parts of these lengths are written to `storage`, with
// chunks no larger than the parts.
LaneOptions LanesFor(const MemoryBudget& budget, StorageKind storage,
                     std::span<const uint64_t> parts);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_MEMORY_BUDGET_H_
