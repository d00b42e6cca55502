// TargetJob: one run's right to a target folder, from the first check to the published set.
//
// Files are staged under `.reshard` in the target folder and published together: until Publish the
// names in the target folder stay as they are; a manifest, put in place last, says that the set is
// whole. A run that ended before publishing, however it ended, leaves nothing but `.reshard`: the
// files that were finished, which a run that resumes keeps and any other one clears. One killed
// while publishing is completed by the next run of the same plan (job_folder.h).
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
#include "src/os/staged_file.h"

namespace reshard {

// Heads of the part records of files that an interrupted run has finished, by path.
using FinishedFiles = std::map<std::string, PartRecordHead>;

class TargetJob final : public Job {
 public:
  // Makes the target folder and locks it, deals with what earlier runs left, and checks that the
  // run can succeed (CheckTarget, CheckSpace).
  //
  // A publication of the same plan that was interrupted is completed: by Publish when it was that
  // of the same files from the same sources, else here and now; when it was that of the same files
  // from sources that are not the same any more, its files may be replaced without `force`.
  //
  // Errors: kInvalidArgument; kAlreadyExists for outputs that are there, a lock that is held, or an
  // interrupted publication of another plan; kIo; kCorrupt for a journal that is none.
  static Result<TargetJob> Begin(JobSpec spec);

  // Checks what Begin would, but makes, moves and removes nothing. Returns the free bytes where the
  // target folder is or would be, or nothing where the file system does not say. Errors: as Begin.
  static Result<std::optional<uint64_t>> Check(JobSpec spec);

  TargetJob(TargetJob&&) = default;
  TargetJob& operator=(TargetJob&&) = delete;
  // Unless it was published, removes what is staged but not finished; after a failure while
  // publishing, nothing.
  ~TargetJob() override;

  // Whether nothing is left to write, but only to publish.
  bool already_staged() const { return already_staged_; }

  // Returns the part record's head of a file that an interrupted run has finished, when this run
  // resumes it, or nothing.
  const PartRecordHead* Finished(const std::string& path) const;
  // Reads a file that was Finished, or one of an interrupted publication wherever it is now, and
  // compares it with the digest that was recorded. Errors: those of SourceFiles; kCancelled.
  Result<bool> IsAsRecorded(const std::string& path, const std::stop_token& stop) const;
  // Returns how many of the spec's files are finished, here or by that run.
  size_t CountFinished() const;

  // Parts are whole files, by their numbers in the spec. Keeps what was Finished, where the run
  // resumes it; to verify it, what IsAsRecorded.
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

  // Removes what is not finished, and all of it where nothing is.
  Status Leave() const;
  // Returns the spec's files that are finished; removes those that are not.
  Result<FinishedFiles> KeepFinished() const;

  std::vector<std::string> made_;  // folders made for the target folder
  Superseded superseded_;
  FinishedFiles finished_;                // by an interrupted run
  std::vector<ManifestFile> publishing_;  // the files of the publication that already_staged_ tells
  bool already_staged_ = false;
  bool published_ = false;
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_TARGET_JOB_H_
