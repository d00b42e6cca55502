// ProgressRecord: how far a worker of a conversion is, or a run alone, as it says itself. It leaves
// the record in its job folder (src/job/job_folder.h).
//
// The record is for people who watch the run. It is written in place and not flushed, so it may be
// missing, old or damaged. Pure functions; any thread.
#ifndef RESHARD_SRC_JOB_PROGRESS_RECORD_H_
#define RESHARD_SRC_JOB_PROGRESS_RECORD_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Bytes and parts are those of target files: of the worker's share, or all of a run alone.
struct ProgressRecord {
  Progress::Phase phase = Progress::Phase::kCheck;
  uint64_t bytes_done = 0;    // those of parts that are being written included
  uint64_t bytes_before = 0;  // of these, in parts that an earlier start has finished
  uint64_t bytes_total = 0;
  uint64_t parts_done = 0;
  uint64_t parts_total = 0;
  // How long this start has been writing, by the clock of its host.
  uint64_t write_ms = 0;

  friend bool operator==(const ProgressRecord&, const ProgressRecord&) = default;
};

// A file has at most so many bytes.
inline constexpr uint64_t kMaxProgressBytes = 1024;

// Returns the time between two records of one of so many workers, so that all together write at
// most about 100 a second.
std::chrono::seconds ProgressInterval(uint64_t workers);

// Returns a line of always the same length, so that it can be written over an older one.
std::string EncodeProgress(const ProgressRecord& record);

// Parses a whole file; `path` names it in messages. Errors: kCorrupt.
Result<ProgressRecord> ParseProgress(std::string_view text, const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_PROGRESS_RECORD_H_
