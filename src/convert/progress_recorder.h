// ProgressRecorder: leaves records of a conversion's progress in its job folder, for FindStatus.
//
// It has no thread: it writes when the conversion reports progress, but rarely. Update calls must
// not overlap; any thread may call AddKept meanwhile.
#ifndef RESHARD_SRC_CONVERT_PROGRESS_RECORDER_H_
#define RESHARD_SRC_CONVERT_PROGRESS_RECORDER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "reshard/options.h"
#include "src/job/job.h"

namespace reshard {

class ProgressRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // The parts of the process's share; all files of a run alone.
  struct Share {
    uint64_t bytes = 0;
    uint64_t bytes_before = 0;  // of these, finished by an earlier start
    uint64_t parts = 0;
    uint64_t parts_before = 0;  // of these, that Progress does not count
  };

  // `job` outlives this. All workers together leave about 100 records a second, and each worker at
  // most one.
  ProgressRecorder(const Job& job, const std::optional<WorkerShare>& worker, const Share& share);
  ProgressRecorder(const ProgressRecorder&) = delete;
  ProgressRecorder& operator=(const ProgressRecorder&) = delete;

  // Bytes of parts that need not be written. Progress counts them.
  void AddKept(uint64_t bytes) { kept_ += bytes; }
  // Writes a record if it is time, and when writing begins or ends.
  void Update(const Progress& progress);

 private:
  const Job& job_;
  const std::optional<WorkerShare> worker_;
  const Share share_;
  const Clock::duration interval_;
  std::atomic<uint64_t> kept_ = 0;
  std::optional<Progress::Phase> phase_;  // of the last update
  Clock::time_point last_;                // of the last record
  Clock::time_point write_begin_;
  uint64_t checked_bytes_ = 0;  // that progress had when writing began
};

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_PROGRESS_RECORDER_H_
