// What a conversion may take of the memory, and for what.
//
// Everything that a run holds counts: anonymous memory, as it is measured, the pages of sources
// that it brings into the page cache, and those of targets on their way to the disk. Plain values;
// any thread.
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

// The measurements of one call, from its begin on.
struct MeasuredMemory {
  // Returns the bytes that are held now, pages of sources included, and remembers the most.
  uint64_t Look();
  // Remembers `bytes` that are held, pages included.
  void Note(uint64_t bytes);

  MemoryMeter meter;
  // Bytes of pages of sources, which SourceFiles counts.
  std::shared_ptr<std::atomic<uint64_t>> pages = std::make_shared<std::atomic<uint64_t>>(0);
  std::atomic<bool> planned = false;  // the call has divided what planning left
  std::atomic<bool> refuses = true;   // until files are published
  std::atomic<uint64_t> peak = 0;     // of what was noted
};

struct MemoryBudget {
  uint64_t limit = 0;
  bool asked_for = false;     // the limit, not a default
  size_t lanes = 1;           // at most as many as are asked for
  uint64_t chunk_bytes = 0;   // a lane has two
  uint64_t window_bytes = 0;  // source windows and what is read ahead
  // Besides, where only headers were read so far: pages that were read beside dense headers, whose
  // contents then need not be read again. None where a limit was asked for.
  uint64_t header_bytes = 0;
  uint64_t write_back_bytes = 0;  // target pages on their way to the disk
  uint64_t index_bytes = 0;
  uint64_t plan_bytes = 0;  // plans of the files that are open at a time
  // The same of those that are planned, which need not be made again to be written; none where a
  // limit was asked for.
  uint64_t kept_plan_bytes = 0;
  uint64_t planned_peak = 0;  // what a run holds at the most; DivideRest says it
  std::shared_ptr<MeasuredMemory> measured = std::make_shared<MeasuredMemory>();
};

// Divides `limit` bytes for a run of `lanes`, before it is known what it converts. 0 stands for
// 256 MiB, or a quarter of the memory that there is when that is less, but never less than works.
// Where it is short there are fewer lanes. Errors: kInvalidArgument for less than works.
Result<MemoryBudget> DivideMemory(uint64_t limit, size_t lanes);

// Returns what fails with kResourceExhausted when more is held than a limit that was asked for
// allows, as long as nothing is published; any other limit is only measured against.
MemoryCheck CheckOf(const MemoryBudget& budget);

// Returns what a MemoryWatch asks for a call with this budget: CheckOf, if a limit was asked for.
MemoryCheck WatchOf(const MemoryBudget& budget);

// Divides what is left for the writing of `work` when `held` bytes are held once it is planned, and
// `headers` more of pages as header_bytes counts them, of which half of what is left is kept. A
// limit that was not asked for is raised where it is too low: the run takes what it needs, up to a
// quarter of the host's memory as long as that is enough. Errors: kResourceExhausted, saying which
// limit is enough.
Result<MemoryBudget> DivideRest(const MemoryBudget& budget, const WorkList& work, uint64_t held,
                                uint64_t headers = 0);

// What planning holds of sources, in bytes.
struct HeldOfSources {
  uint64_t peak = 0;      // the most bytes of pages that were held at a time
  uint64_t headers = 0;   // now, where only headers were read
  uint64_t buffered = 0;  // now, in anonymous memory, for what is read ahead
  uint64_t indexing = 0;  // beyond what is held now, while files are indexed once more
};

// As DivideRest, of what is held now. Adds a warning to `warnings` when the limit was raised.
Result<MemoryBudget> FitMemory(const MemoryBudget& budget, const HeldOfSources& sources,
                               const WorkList& work, std::vector<Warning>& warnings);

// Returns the budget for targets that are written past the page cache: what was for their pages,
// but for some that may have to be written otherwise, is for windows.
MemoryBudget PastPageCache(MemoryBudget budget);

// Returns how many files may be open at a time, one at least, for their plans and at all.
size_t MostOpen(const MemoryBudget& budget, const WorkList& work);
size_t MaxGroup(const MemoryBudget& budget, const WorkList& work);

// Returns the lanes that have something to do when parts of these lengths are written to `storage`,
// with chunks no larger than the parts.
LaneOptions LanesFor(const MemoryBudget& budget, StorageKind storage,
                     std::span<const uint64_t> parts);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_MEMORY_BUDGET_H_
