// What a run removes of the sets before (`prune`), once its own is published.
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

// How files are held against what manifests say of them.
enum class PruneCheck {
  kSizes,    // before there is anything to remove
  kDigests,  // a file is read, unless it has no digest
};

struct Pruning {
  std::vector<PrunedFile> files;  // sorted by path
  std::vector<std::string> kept;  // that are not what was listed any more
};

// Returns the files of manifests that go which neither the new one nor one that stays lists; none
// unless the spec prunes. Files that `known` has, unchanged, are not read again. Errors: kIo.
Result<Pruning> FindPruned(const JobSpec& spec, const TargetFindings& findings,
                           const OutputDirectory& target, PruneCheck check,
                           const Pruning& known = {});

// Asks the spec's check_readers, if it has one.
Status CheckReaders(const JobSpec& spec, const TargetFindings& findings, const Pruning& pruning);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_PRUNING_H_
