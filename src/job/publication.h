// Publication: a staged set put in the place of what was there before, with the manifest that its
// part records add up to.
//
// No state but a ManifestBuilder's; one thread, which holds the right to publish.
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
  // `empty` has neither files nor sources.
  explicit ManifestBuilder(Manifest empty) : manifest_(std::move(empty)) {}

  // Adds `file` with what its part record says; beside path and size only the record's digest
  // counts, where it is known. Files come sorted by path.
  // Errors: kCorrupt for a record that is none; kMismatch for another one than expected, or for one
  // that disagrees with those before on a source. Then the file is not added.
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

// What to say of files of earlier sets, by name, that are in no manifest of `folder` any more.
Warning FilesLeft(const std::string& folder, const std::vector<std::string>& names);

// Adds to `report` what casts lost in the files of a set, `lost` by parameter, with warnings.
// Errors: kMismatch, if `checks` refuse that.
Status ReportLost(const CheckChoice& checks, const std::map<std::string, LostValues>& lost,
                  PublishReport& report);

// What the new set replaces.
struct Superseded {
  TargetFindings findings;
  Pruning pruning;                          // as far as it is known
  std::vector<std::string> abandoned_jobs;  // their fingerprints
};

// Returns what the spec's set replaces in `target`, where it may (CheckTarget, CheckReaders).
// `abandoned`: more files of sets before.
Result<Superseded> CheckSuperseded(const JobSpec& spec, const OutputDirectory& target, bool replace,
                                   PruneCheck check, std::vector<ManifestFile> abandoned = {});

// Makes the spec's files, all staged in `folder`, publishable: from here on the publication can be
// completed by any process. `unflushed`: as for JobFolder::Commit. Errors: kIo.
Status MakePublishable(const JobSpec& spec, const Superseded& superseded,
                       const std::vector<ManifestFile>& unflushed, JobFolder& folder,
                       const OutputDirectory& parent, const OutputDirectory& target,
                       PublishReport& report);

// Removes what is to be pruned. What fails now is no failure of the run, but a warning.
void PruneAfter(const JobFolder& folder, const OutputDirectory& target, PublishReport& report);

// Clears up after a publication. What fails now is no failure of the run, but a warning.
void ClearAfter(const JobSpec& spec, const JobLock& lock, const OutputDirectory& target,
                PublishReport& report);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_PUBLICATION_H_
