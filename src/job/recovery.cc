#include "src/job/recovery.h"

#include <algorithm>

#include "src/base/status_macros.h"
#include "src/job/leftovers.h"
#include "src/job/move_proof.h"

namespace reshard {

Result<Recovered> Recover(const OutputDirectory& target, const OutputDirectory& parent,
                          const JobSpec& spec) {
  Recovered recovered;
  RESHARD_ASSIGN_OR_RETURN(const std::vector<Leftover> leftovers,
                           JudgeLeftovers(target, parent, spec));
  const auto is_given_up = [](const Leftover& leftover) {
    return leftover.fate == Fate::kDiscard || leftover.fate == Fate::kAbandon;
  };
  if (std::any_of(leftovers.begin(), leftovers.end(), is_given_up)) {
    RESHARD_RETURN_IF_ERROR(RemoveProbes(target));
  }
  for (const Leftover& leftover : leftovers) {
    recovered.same_files = recovered.same_files || leftover.same_files;
    switch (leftover.fate) {
      case Fate::kResume:
      case Fate::kCleanUp: {
        recovered.already_staged = true;
        recovered.publishing = leftover.files;
        RESHARD_ASSIGN_OR_RETURN(recovered.folder, JobFolder::Open(parent, leftover.fingerprint));
        break;
      }
      case Fate::kComplete: {
        RESHARD_ASSIGN_OR_RETURN(const JobFolder folder,
                                 JobFolder::Open(parent, leftover.fingerprint));
        RESHARD_RETURN_IF_ERROR(folder.Publish(target));
        RESHARD_RETURN_IF_ERROR(JobFolder::CleanUp(parent, leftover.fingerprint));
        break;
      }
      case Fate::kAbandon:  // not before this run has something to put in its place
        for (const ManifestFile& file : leftover.files) recovered.abandoned.push_back(file.path);
        recovered.abandoned_jobs.push_back(leftover.fingerprint);
        break;
      case Fate::kContinue: {
        RESHARD_ASSIGN_OR_RETURN(recovered.folder, JobFolder::Open(parent, leftover.fingerprint));
        break;
      }
      case Fate::kDiscard:
        RESHARD_RETURN_IF_ERROR(JobFolder::Discard(parent, leftover.fingerprint));
        break;
    }
  }
  return recovered;
}

}  // namespace reshard
