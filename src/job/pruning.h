// The files of earlier sets that a run removes (`prune`) once its own set is published.
//
// Reads only. No state; any thread.
#ifndef RESHARD_SRC_JOB_PRUNING_H_
#define RESHARD_SRC_JOB_PRUNING_H_

#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_folder.h"
#include "src/job/job_spec.h"
#include "src/job/target_check.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

// How files are compared with their manifests.
enum class PruneCheck {
  kSizes,    // before there is anything to remove
  kDigests,  // a file is read, unless it has no digest
};

struct Pruning {
  std::vector<PrunedFile> files;  // sorted by path
  std::vector<std::string> kept;  // files that no longer are as listed
};

// Returns the files of replaced manifests that are in no manifest that stays or comes. Returns none
// unless the spec prunes. Does not read unchanged files of `known` again. Errors: kIo.
Result<Pruning> FindPruned(const JobSpec& spec, const TargetFindings& findings,
                           const OutputDirectory& target, PruneCheck check,
                           const Pruning& known = {});

// Asks the spec's check_readers, if it has one.
Status CheckReaders(const JobSpec& spec, const TargetFindings& findings, const Pruning& pruning);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_PRUNING_H_
