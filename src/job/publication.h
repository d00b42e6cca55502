// Publication: puts a staged set in the place of an earlier one, with a manifest made from its part
// records.
//
// No state except in ManifestBuilder. One thread, which holds the right to publish.
#ifndef RESHARD_SRC_JOB_PUBLICATION_H_
#define RESHARD_SRC_JOB_PUBLICATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_folder.h"
#include "src/job/job_spec.h"
#include "src/job/pruning.h"
#include "src/job/target_check.h"
#include "src/os/job_lock.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"

namespace reshard {

class ManifestBuilder {
 public:
  // `empty` has no files and no sources.
  explicit ManifestBuilder(Manifest empty) : manifest_(std::move(empty)) {}

  // Adds `file` with the facts of its part record. Of `file` itself, only path, size and the
  // record's digest, if known, count. Files come sorted by path. After an error the file is not
  // added.
  // Errors:
  //   kCorrupt: an invalid record
  //   kMismatch: another record than expected, or one that contradicts earlier ones about a source
  Status Add(const ManifestFile& file, std::string_view record);

  // Of the files added: how many finite values casts made infinite or NaN, by parameter.
  const std::map<std::string, LostValues>& lost() const { return lost_; }

  Manifest Finish();

 private:
  Manifest manifest_;
  SourceSummary sources_;
  std::map<std::string, LostValues> lost_;  // by parameter
};

struct PublishReport {
  bool published = false;             // the whole set is in place
  bool by_other = false;              // and another process has put it there
  std::vector<uint64_t> outstanding;  // workers that have not finished; none when it is published
  std::vector<Warning> warnings;
  uint64_t pruned = 0;         // files that were removed
  uint64_t values_lost = 0;    // finite ones that casts made infinite or NaN, in all files
  uint64_t values_zeroed = 0;  // others than zero that casts made zero, likewise
};

// The warning about files of earlier sets, by name, that no manifest of `folder` lists any more.
Warning FilesLeft(const std::string& folder, const std::vector<std::string>& names);

// Adds to `report` the values that casts lost in the files of a set, `lost` by parameter, with
// warnings.
// Errors: kMismatch, if `checks` refuse that.
Status ReportLost(const CheckChoice& checks, const std::map<std::string, LostValues>& lost,
                  PublishReport& report);

// The files and manifests that the new set replaces.
struct Superseded {
  TargetFindings findings;
  Pruning pruning;                          // as far as it is known
  std::vector<std::string> abandoned_jobs;  // their fingerprints
};

// Returns the files that the spec's set replaces in `target`, after CheckTarget and CheckReaders
// allow it. `abandoned` are more files of earlier sets.
Result<Superseded> CheckSuperseded(const JobSpec& spec, const OutputDirectory& target, bool replace,
                                   PruneCheck check, std::vector<ManifestFile> abandoned = {});

// The folders of a job. All must outlive it.
struct JobFolders {
  JobFolder& job;
  const OutputDirectory& parent;  // of the job's
  const OutputDirectory& target;
};

// Makes the spec's files, all staged in the job's folder, publishable: from here on the publication
// can be completed by any process. `unflushed`: as for JobFolder::Commit. Errors: kIo.
Status MakePublishable(const JobSpec& spec, const Superseded& superseded,
                       const std::vector<ManifestFile>& unflushed, const JobFolders& folders,
                       PublishReport& report);

// Removes the files to prune. A failure is a warning, because the run itself has succeeded.
void PruneAfter(const JobFolder& folder, const OutputDirectory& target, PublishReport& report);

// Clears up after a publication. A failure is a warning, because the run itself has succeeded.
void ClearAfter(const JobSpec& spec, const JobLock& lock, const OutputDirectory& target,
                PublishReport& report);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_PUBLICATION_H_
