// WorkerState: what becomes of each worker of a job, or of a run alone, as far as its files tell.
//
// Only reads, and holds up no worker. Any thread.
#ifndef RESHARD_SRC_JOB_WORKER_STATES_H_
#define RESHARD_SRC_JOB_WORKER_STATES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_folder.h"
#include "src/job/progress_record.h"

namespace reshard {

struct WorkerState {
  enum class Kind {
    kNotStarted,
    kRunning,   // its lock is held
    kFinished,  // it has left its mark
    kDead,      // neither
  };

  Kind kind = Kind::kNotStarted;
  std::string process = {};  // of kRunning and kDead: "process 4711 on node3"; empty: unknown
  // Of kRunning and kDead: its record, or why that cannot be read. Neither: there is none.
  std::optional<ProgressRecord> record = {};
  Status damage = {};
  int64_t record_ns = 0;  // when the record was written, by the clock of the file system
};

// Returns the states of all of so many workers; 0: the one state of a run alone, which leaves no
// mark. Errors: kNotFound if the folder has been removed, kIo.
Result<std::vector<WorkerState>> FindWorkers(const JobFolder& folder, uint64_t workers);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_WORKER_STATES_H_
