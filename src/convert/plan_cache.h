// PlanCache: plans of target files that were made, as far as memory is given for them.
//
// Thread-safe.
#ifndef RESHARD_SRC_CONVERT_PLAN_CACHE_H_
#define RESHARD_SRC_CONVERT_PLAN_CACHE_H_

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "reshard/convert.h"
#include "reshard/status.h"
#include "src/plan/target.h"
#include "src/plan/target_plan.h"

namespace reshard {

class PlanCache {
 public:
  // Keeps the plan of a file, of about `bytes`. Drops least recently used plans beyond the limit,
  // except this one and those that somebody else has, too.
  void Add(int64_t file, PlanHandle plan, uint64_t bytes);
  // Drops such plans until `bytes` more fit, as far as that is possible.
  void MakeRoom(uint64_t bytes);
  // Returns the plan of a file, or null if it is not kept.
  PlanHandle Find(int64_t file);
  // As Find; it is kept no longer.
  PlanHandle Take(int64_t file);
  // Sets the limit; without a call, all plans are kept.
  void SetMost(uint64_t most_bytes);
  // Of the plans that are kept.
  uint64_t bytes() const;

 private:
  struct Kept {
    int64_t file;
    PlanHandle plan;
    uint64_t bytes;
  };

  void Remove(std::list<Kept>::iterator kept);
  void DropUnused(uint64_t most_bytes);

  mutable std::mutex mutex_;
  // mutex_ guards these and the members below. The most recently used plan comes first.
  std::list<Kept> kept_;
  std::map<int64_t, std::list<Kept>::iterator> places_;
  uint64_t most_bytes_ = std::numeric_limits<uint64_t>::max();
  uint64_t bytes_ = 0;
};

// Plans a file again without repeating its findings. `expected` has the result of its first plan.
// Errors: as Target::Plan; kInternal if the size differs.
Result<PlanHandle> PlanAgain(const Target& target, const PlanReport::TargetFile& expected);

// About the bytes of memory that a plan holds.
uint64_t BytesOf(const TargetPlan& plan);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_PLAN_CACHE_H_
