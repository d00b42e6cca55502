// WorkerJob: a worker's right to its share of a target folder, from the first check to publication.
//
// The workers of a conversion are processes, perhaps on several machines. They stage files in one
// job folder (job_folder.h). A worker does not wait for others while it writes. The last one that
// finishes its share publishes, or a process that was called for that. A worker that ends in any
// way leaves its finished parts, and continues with them when it is started again. Workers leave
// block records for the parts of a shared file. When all parts are there, one process joins these
// records into the file's part record.
//
// All workers hold the target's lock together, so that other runs do not write there. Threads: as
// Job.
#ifndef RESHARD_SRC_JOB_WORKER_JOB_H_
#define RESHARD_SRC_JOB_WORKER_JOB_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/job/file_shares.h"
#include "src/job/job.h"
#include "src/job/job_spec.h"
#include "src/job/worker_states.h"
#include "src/os/job_lock.h"
#include "src/os/staged_file.h"

namespace reshard {

// WorkerTurn: a worker's turn to begin. The others wait until it has begun, so one of them can plan
// for all. Move-only. At its end, removes what it made, unless there are files of a job.
class WorkerTurn {
 public:
  // Makes the target folder and waits for the turn. Errors: as LockTarget; kInvalidArgument for a
  // worker that cannot be.
  static Result<WorkerTurn> Take(const std::string& target_folder, const WorkerShare& worker,
                                 const Patience& patience);
  WorkerTurn(WorkerTurn&& other) noexcept : held_(std::exchange(other.held_, std::nullopt)) {}
  WorkerTurn& operator=(WorkerTurn&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~WorkerTurn();

  const JobLock& lock() const { return held_->lock; }
  LockedTarget Release() && { return *std::exchange(held_, std::nullopt); }

 private:
  explicit WorkerTurn(LockedTarget held) : held_(std::move(held)) {}

  std::optional<LockedTarget> held_;
};

class WorkerJob final : public Job {
 public:
  // Makes the target folder, joins the workers there, and checks that the run can succeed. The
  // first worker deals with the leftovers of earlier runs, as TargetJob does with
  // OutputChoice::Resume::kTrust. `spec` is the spec of all workers, and its `workers` equals
  // worker.count. `turn`, if any, has waited already. Errors: as TargetJob::Begin, and
  //   kAlreadyExists: another process does this share, or workers of another conversion are there
  //   kMismatch, kChanged: the job was begun with other options or sources
  //   kIo: the job of the plan that the spec follows is gone
  //   kCancelled
  static Result<WorkerJob> Begin(JobSpec spec, const WorkerShare& worker, const Patience& patience,
                                 std::optional<WorkerTurn> turn = std::nullopt);

  // Opens the job that workers have left in `target_folder`, to publish it. Returns no value if
  // there is only a published set.
  // Errors:
  //   kNotFound: there is no job and no published set
  //   kAlreadyExists: several jobs, or another run
  //   kIo
  static Result<std::optional<WorkerJob>> Open(const std::string& target_folder,
                                               const Patience& patience);

  // Sets a field that the text of a spec cannot hold.
  void set_check_readers(std::function<Status(const NamesToCome& names)> check) {
    spec_.check_readers = std::move(check);
  }
  // Of a job that was opened: the states that all workers had then.
  const std::vector<WorkerState>& workers() const { return workers_; }
  // The unfinished parts of the worker's share, by the numbers of the spec's files.
  const std::vector<FilePart>& unfinished() const { return unfinished_; }
  // The parts that were finished before.
  const std::vector<FilePart>& finished() const { return finished_; }

  // Always false, because finished parts are not in the list of parts to write.
  Result<bool> IsKept(const FilePart& part, const std::stop_token& stop) const override;
  Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const override;
  Status Finish(const FilePart& part, StagedFile file, const FinishedPart& finished,
                const std::stop_token& stop) const override;
  bool IsWhole(const FilePart& part) const;

  // Marks the share as finished: its parts are, and their sources are unchanged. Errors: kIo.
  Status FinishShare() const;

  // Joins files whose parts are all there, and publishes once all shares are finished. Waits for
  // other workers that do the same. After an error or a kill, this or another worker completes it.
  // Errors: kIo, kCorrupt, kCancelled.
  Result<PublishReport> Commit(const Patience& patience);

 private:
  WorkerJob(JobSpec spec, std::optional<WorkerShare> worker, OutputDirectory target, JobLock lock);

  // The steps of Begin once it holds the lock.
  Status Start();
  Status Join();
  Status LookAtShare();
  // Begins the job, or looks at the part of the target folder that is still to be written.
  Status CheckTargetFiles(bool same_files) const;
  // Joins the parts of a file that has no part record yet. Without `wait`, only if all parts are
  // there and if this worker alone is joining the file.
  Status JoinFile(size_t number, bool wait, const Patience& patience) const;
  // So that files are joined by several workers at a time, as they are completed.
  Status JoinOwnFiles(const Patience& patience) const;
  // Ok if all files that a publication has moved or still has to move are whole.
  Status CheckCanComplete(const JobText& journal) const;
  Result<Superseded> FindSuperseded() const;

  std::optional<WorkerShare> worker_;  // none: only to publish
  std::optional<FileLock> worker_lock_;
  std::vector<std::vector<ByteRange>> parts_;  // of each file
  std::vector<WorkerState> workers_;
  std::vector<FilePart> unfinished_;
  std::vector<FilePart> finished_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_WORKER_JOB_H_
