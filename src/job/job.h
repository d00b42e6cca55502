// Job: a process's right to a target folder, the common base of TargetJob and WorkerJob.
//
// Holds the target's lock until it dies. Move-only. Any number of threads may call functions about
// one file at a time, each with its own files or parts of files. One thread calls all other
// functions, while no other call is under way.
#ifndef RESHARD_SRC_JOB_JOB_H_
#define RESHARD_SRC_JOB_JOB_H_

#include <optional>
#include <utility>

#include "reshard/options.h"
#include "reshard/status.h"
#include "src/job/job_folder.h"
#include "src/job/job_spec.h"
#include "src/job/progress_record.h"
#include "src/job/publication.h"
#include "src/job/published_set.h"
#include "src/os/job_lock.h"
#include "src/os/output_directory.h"
#include "src/os/storage_kind.h"
#include "src/write/part_sink.h"

namespace reshard {

class Job : public PartSink {
 public:
  const JobSpec& spec() const { return spec_; }
  // The kind of storage below the target folder.
  StorageKind storage() const { return StorageOf(target_.fd()); }

  // The set that an earlier run published, if the job looks for it. If it is `found`, the job has
  // no work, and only spec() and this function may be called.
  const PublishedSet& earlier() const { return earlier_; }

  // Leaves the record of how far the run is, of the one of `worker` or alone. While parts are being
  // written. A failure is not told: the record is for others.
  void LeaveProgress(const std::optional<WorkerShare>& worker, const ProgressRecord& record) const;

 protected:
  Job(JobSpec spec, OutputDirectory target, JobLock lock)
      : spec_(std::move(spec)), target_(std::move(target)), lock_(std::move(lock)) {}
  Job(Job&&) = default;

  // Looks for the set that the job would make, for `earlier()`. Errors: as TakePublished.
  Status FindEarlier();

  // Moves the contents of the job folder into place, and prunes. Errors: kIo, kNotFound.
  Status PutInPlace(PublishReport& report);

  JobSpec spec_;
  OutputDirectory target_;
  JobLock lock_;
  std::optional<JobFolder> folder_;
  PublishedSet earlier_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_JOB_H_
