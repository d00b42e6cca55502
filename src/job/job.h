// Job: what TargetJob and WorkerJob have in common, a process's right to a target folder.
//
// Holds the target's lock until it dies. Move-only. What is about one file may be called by any
// number of threads at a time, each with files, or parts of files, of its own; everything else by
// one, while no other call is under way.
#ifndef RESHARD_SRC_JOB_JOB_H_
#define RESHARD_SRC_JOB_JOB_H_

#include <optional>
#include <utility>

#include "reshard/status.h"
#include "src/job/job_folder.h"
#include "src/job/job_spec.h"
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
  // What the target folder is stored on.
  StorageKind storage() const { return StorageOf(target_.fd()); }

  // The set that was there, of a job that looks for it. If it is `found`, there is nothing to do,
  // and nothing but spec() and this may be called.
  const PublishedSet& earlier() const { return earlier_; }

 protected:
  Job(JobSpec spec, OutputDirectory target, JobLock lock)
      : spec_(std::move(spec)), target_(std::move(target)), lock_(std::move(lock)) {}
  Job(Job&&) = default;

  // Looks for the set that the job would make; `earlier()` is what it has found. Errors: as
  // TakePublished.
  Status FindEarlier();

  // Puts in place what the job folder holds, and prunes. Errors: kIo, kNotFound.
  Status PutInPlace(PublishReport& report);

  JobSpec spec_;
  OutputDirectory target_;
  JobLock lock_;
  std::optional<JobFolder> folder_;
  PublishedSet earlier_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_JOB_H_
