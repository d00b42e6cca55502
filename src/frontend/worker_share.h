// Which share of a conversion a process does, as what started it says.
//
// Pure; any thread.
//
// Implemented in src/base.
#ifndef RESHARD_SRC_FRONTEND_WORKER_SHARE_H_
#define RESHARD_SRC_FRONTEND_WORKER_SHARE_H_

#include <functional>
#include <optional>
#include <string>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Returns the value of a variable, or nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Returns the share that a launcher of parallel jobs has put into the environment of each of its
// processes: torchrun or msrun, where one of these was it; else Open MPI, PMI (MPICH and its kin),
// Slurm, an indexed job of Kubernetes; else who sets RANK and WORLD_SIZE, or RANK_ID and RANK_SIZE.
// Errors: kInvalidArgument, naming the variables that are missing, wrong, or ambiguous.
Result<WorkerShare> FindWorkerShare(const Environment& environment);

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_WORKER_SHARE_H_
