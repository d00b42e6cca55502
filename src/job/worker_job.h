// WorkerJob: a worker's right to its share of a target folder, from the first check to publication.
//
// Workers of one conversion, each a process, perhaps on machines of their own, stage the files of
// one job folder (job_folder.h). None waits for another while it writes; the last one that has
// finished its share publishes, or whoever is called to. A worker that ended in any way leaves what
// it has finished; the same worker goes on with it. Parts of a file that several workers write
// leave block records; when all are there, one process joins them into the file's part record.
//
// Holds the target's lock together with the other workers, so that no other run writes there.
// Threads: as Job.
#ifndef RESHARD_SRC_JOB_WORKER_JOB_H_
#define RESHARD_SRC_JOB_WORKER_JOB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/job/file_shares.h"
#include "src/job/job.h"
#include "src/job/job_spec.h"
#include "src/os/job_lock.h"
#include "src/os/staged_file.h"

namespace reshard {

class WorkerJob final : public Job {
 public:
  // Makes the target folder, joins the workers that are at work there, and checks that the run can
  // succeed. The first one deals with what earlier runs left, as TargetJob does with
  // Resume::kTrust. `spec` is that of all workers, its `workers` worker.count.
  // Errors: as TargetJob::Begin; kAlreadyExists for a worker that is at work in another process, or
  // workers of another conversion; kMismatch, kChanged for a job that was begun otherwise;
  // kCancelled.
  static Result<WorkerJob> Begin(JobSpec spec, const WorkerShare& worker, const Patience& patience);

  // Opens the job that workers have left in `target_folder`, to publish it; nothing where there is
  // none, but a set that was published.
  // Errors: kNotFound where there is neither; kAlreadyExists for several jobs, or another run; kIo.
  static Result<std::optional<WorkerJob>> Open(const std::string& target_folder,
                                               const Patience& patience);

  // Sets what a spec that was read from its text does not have.
  void set_check_readers(std::function<Status(const NamesToCome& names)> check) {
    spec_.check_readers = std::move(check);
  }
  // Of a job that was opened: the workers that were at work then, and in which processes as far as
  // that is known.
  const std::map<uint64_t, std::string>& at_work() const { return at_work_; }
  // What is left of the worker's share, by the numbers of the spec's files.
  const std::vector<FilePart>& unfinished() const { return unfinished_; }
  // What of it was finished before.
  const std::vector<FilePart>& finished() const { return finished_; }

  // Keeps nothing: what was finished is not to be written.
  Result<bool> IsKept(const FilePart& part, const std::stop_token& stop) const override;
  Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const override;
  Status Finish(const FilePart& part, StagedFile file, const FinishedPart& finished,
                const std::stop_token& stop) const override;
  bool IsWhole(const FilePart& part) const;

  // Says that the share is finished: its parts are, and their sources are what they were.
  // Errors: kIo.
  Status FinishShare() const;

  // Joins the files whose parts are all there, and publishes once all shares are finished; waits
  // for others that do so. Errors: kIo, kCorrupt, kCancelled. After one, and after a kill, another
  // worker or the same one completes it.
  Result<PublishReport> Commit(const Patience& patience);

 private:
  WorkerJob(JobSpec spec, std::optional<WorkerShare> worker, OutputDirectory target, JobLock lock);

  // What Begin does once it holds the lock.
  Status Start();
  Status Join();
  Status LookAtShare();
  // Joins the parts of a file that has no part record yet. Without `wait` only where all parts are
  // there and nobody else is joining them.
  Status JoinFile(size_t number, bool wait, const Patience& patience) const;
  // So that files are joined by several workers at a time, as they are completed.
  Status JoinOwnFiles(const Patience& patience) const;
  // Ok when what a publication that has begun has to put in place, or has put there, is whole.
  Status CheckCanComplete(const JobText& journal) const;
  Result<Superseded> FindSuperseded() const;

  std::optional<WorkerShare> worker_;  // none: only to publish
  std::optional<FileLock> worker_lock_;
  std::vector<std::vector<ByteRange>> parts_;  // of each file
  std::map<uint64_t, std::string> at_work_;
  std::vector<FilePart> unfinished_;
  std::vector<FilePart> finished_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_WORKER_JOB_H_
