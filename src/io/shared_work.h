// SharedWork: reading many bytes: in steps, shared out to threads, counted, until somebody asks to
// stop.
#ifndef RESHARD_SRC_IO_SHARED_WORK_H_
#define RESHARD_SRC_IO_SHARED_WORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>

#include "reshard/byte_range.h"
#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

struct SharedWork {
  size_t workers = 1;    // threads, the calling one included
  std::stop_token stop;  // a request ends the work with kCancelled
  // Called from any of the threads; may be empty.
  std::function<void(uint64_t bytes)> progress = {};
  std::function<void()> file_done = {};
};

// Deals with the bytes `piece` of the thing number `index`.
using PieceTask = std::function<Status(size_t index, ByteRange piece, const std::stop_token& stop)>;

// Cuts items with these sizes into pieces of at most `piece_bytes` and calls `task` for each, in
// any order. Empty items have no pieces. Errors: as RunWorkers.
Status ForEachPiece(std::span<const uint64_t> sizes, uint64_t piece_bytes, const SharedWork& work,
                    const PieceTask& task);

// Calls step(part) for the parts into which the multiples of `step_bytes` cut `piece`, in order,
// until one fails or `stop` is requested, and reports their bytes to `progress`.
Status InSteps(ByteRange piece, uint64_t step_bytes, const std::stop_token& stop,
               const std::function<void(uint64_t)>& progress,
               const std::function<Status(ByteRange)>& step);

// Errors: kInvalidArgument for a negative number of jobs.
Status CheckJobs(int jobs);

// Returns how many threads so many jobs stand for: 0 for one for each core.
size_t Workers(int jobs);

// CountedWork: the options of a call that reads, as SharedWork.
//
// Adds up the bytes and files that any number of threads report. `run` and this must outlive the
// work.
class CountedWork {
 public:
  // `all` has the total work and the first phase.
  CountedWork(const RunOptions& run, const Progress& all);
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;

  const SharedWork& work() const { return work_; }

  // Says that another phase begins.
  void Enter(Progress::Phase phase) const;

 private:
  const std::function<void(const Progress&)>& report_;
  // Mutable: a const object counts too.
  mutable std::mutex mutex_;  // guards sum_, and that calls do not overlap
  mutable Progress sum_;
  SharedWork work_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_IO_SHARED_WORK_H_
