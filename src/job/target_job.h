// TargetJob: one run's right to a target folder, from the first check to the published set.
//
// Files are staged under `.reshard` in the target folder and published together. Until Publish the
// names in the target folder do not change. The manifest, moved into place last, states that the
// set is whole. A run that ends before it publishes leaves only `.reshard` with its finished files.
// A run that resumes keeps these; any other run clears them. If a run is killed while publishing,
// the next run of the same plan completes the publication (job_folder.h).
//
// Threads: as Job.
#ifndef RESHARD_SRC_JOB_TARGET_JOB_H_
#define RESHARD_SRC_JOB_TARGET_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/job/job.h"
#include "src/job/job_spec.h"
#include "src/job/publication.h"
#include "src/os/job_lock.h"
#include "src/os/staged_file.h"

namespace reshard {

// Heads of the part records of files that an interrupted run has finished, by path.
using FinishedFiles = std::map<std::string, PartRecordHead>;

class TargetJob final : public Job {
 public:
  // Makes the target folder and locks it, deals with the leftovers of earlier runs, and checks that
  // the run can succeed (CheckTarget, CheckSpace).
  //
  // An interrupted publication of the same plan is completed. If it has the same files and sources,
  // Publish does so; otherwise Begin does so at once. If the files are the same but the sources
  // have changed, its files may be replaced without `force`.
  //
  // Errors:
  //   kInvalidArgument, kIo
  //   kAlreadyExists: existing outputs, a held lock, or an interrupted publication of another plan
  //   kCorrupt: an invalid journal
  static Result<TargetJob> Begin(JobSpec spec);

  // Makes all checks of Begin, without making, moving or removing a file. Returns the free bytes
  // where the target folder is or would be; no value if the file system does not say. Errors: as
  // Begin.
  static Result<std::optional<uint64_t>> Check(JobSpec spec);

  TargetJob(TargetJob&&) = default;
  TargetJob& operator=(TargetJob&&) = delete;
  // Unless the set was published, removes staged files that are not finished. After a failed
  // publication it removes no files.
  ~TargetJob() override;

  // Whether all files are written, so that only publication is left.
  bool already_staged() const { return already_staged_; }

  // Returns the head of the part record of a file that an interrupted run has finished, if this run
  // resumes it; otherwise null.
  const PartRecordHead* Finished(const std::string& path) const;
  // Reads a file that was Finished, or a file of an interrupted publication at its present place,
  // and compares it with the recorded digest. Errors: as SourceFiles; kCancelled.
  Result<bool> IsAsRecorded(const std::string& path, const std::stop_token& stop) const;
  // Returns how many of the spec's files are finished, here or by that run.
  size_t CountFinished() const;

  // Parts are whole files, by their numbers in the spec. Keeps files that are Finished, if the run
  // resumes them. If the run verifies them, keeps only those that are IsAsRecorded.
  Result<bool> IsKept(const FilePart& part, const std::stop_token& stop) const override;
  // One that was finished is given up.
  Result<StagedFile> Create(const FilePart& part, const WriteOptions& options) const override;
  Status Finish(const FilePart& part, StagedFile file, const FinishedPart& finished,
                const std::stop_token& stop) const override;

  // Puts the files and the manifest in place, once all files are finished. At most once.
  // Errors: kIo, kNotFound. After one the target folder may have no manifest; Begin with the same
  // spec completes it.
  Result<PublishReport> Publish();

 private:
  TargetJob(JobSpec spec, std::vector<std::string> made, OutputDirectory target, JobLock lock);

  // Locks the job folder's file for that, so that others see that the run is at work.
  Status LockRun();
  // Removes unfinished files, and the whole folder if no file is finished.
  Status Leave() const;
  // Returns the finished files of the spec; removes the unfinished ones.
  Result<FinishedFiles> KeepFinished() const;

  std::vector<std::string> made_;  // folders made for the target folder
  std::optional<FileLock> run_lock_;
  Superseded superseded_;
  FinishedFiles finished_;                // by an interrupted run
  std::vector<ManifestFile> publishing_;  // the files of the publication that already_staged_ tells
  bool already_staged_ = false;
  bool published_ = false;
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_TARGET_JOB_H_
