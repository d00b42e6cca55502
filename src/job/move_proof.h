// The proof that staged files can be moved into a target folder, before anything there is given up.
//
// No state. One thread, which holds the right to the target; not while another one publishes.
#ifndef RESHARD_SRC_JOB_MOVE_PROOF_H_
#define RESHARD_SRC_JOB_MOVE_PROOF_H_

#include <vector>

#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

// Moves an empty file from `staging` into `target`, from there into the next folder that `files`
// or their part records go to, and so on, and removes it. Folders that are not there yet will be
// made in `target`. A process that is killed meanwhile leaves the file in one of them; the next
// call for the same files clears it, too. Errors: kIo, naming the folder.
Status ProveMoves(const OutputDirectory& staging, const OutputDirectory& target,
                  const std::vector<ManifestFile>& files);

// Removes what a killed ProveMoves may have left in `target`, its folders and those of the part
// records. Errors: kIo.
Status RemoveProbes(const OutputDirectory& target);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_MOVE_PROOF_H_
