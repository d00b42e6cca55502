// Recovery: a target's `.reshard` made ready for a run, whatever earlier runs left there.
//
// No state; any thread, while it holds the target's lock exclusively.
#ifndef RESHARD_SRC_JOB_RECOVERY_H_
#define RESHARD_SRC_JOB_RECOVERY_H_

#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_folder.h"
#include "src/job/job_spec.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

struct Recovered {
  std::optional<JobFolder> folder;       // of this very job, to be gone on with
  bool already_staged = false;           // only its publication is left to do, or to clear up after
  std::vector<ManifestFile> publishing;  // the files of that publication
  bool same_files = false;               // an earlier run was to write the same files
  std::vector<std::string> abandoned;    // files of publications that are dropped by force
  std::vector<std::string> abandoned_jobs;  // their fingerprints; they go when this run publishes
};

// Clears, completes or takes up what earlier runs left in `parent`, the `.reshard` of `target`.
// Errors: those of JudgeLeftovers and of JobFolder.
Result<Recovered> Recover(const OutputDirectory& target, const OutputDirectory& parent,
                          const JobSpec& spec);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_RECOVERY_H_
