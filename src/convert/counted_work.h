// CountedWork: the options of a call that reads, as the workers of src/verify take them.
#ifndef RESHARD_SRC_CONVERT_COUNTED_WORK_H_
#define RESHARD_SRC_CONVERT_COUNTED_WORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>

#include "reshard/progress.h"
#include "reshard/status.h"
#include "src/verify/shared_work.h"

namespace reshard {

// Errors: kInvalidArgument for a negative number of jobs.
Status CheckJobs(int jobs);

// Returns how many threads so many jobs stand for: 0 for one for each core.
size_t Workers(int jobs);

// Adds up the bytes that any number of threads report. `progress` and this must outlive the work.
class CountedWork {
 public:
  CountedWork(int jobs, const std::stop_token& stop,
              const std::function<void(const Progress&)>& progress, uint64_t total_bytes);
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;

  const SharedWork& work() const { return work_; }

 private:
  // Mutable: a const object counts too.
  mutable std::mutex mutex_;  // guards sum_, and that calls do not overlap
  mutable Progress sum_;
  SharedWork work_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_COUNTED_WORK_H_
