// The share of a conversion that a process does, from the environment of its launcher.
//
// Pure; any thread.
#ifndef RESHARD_SRC_FRONTEND_WORKER_SHARE_H_
#define RESHARD_SRC_FRONTEND_WORKER_SHARE_H_

#include <functional>
#include <optional>
#include <string>

#include "reshard/options.h"
#include "reshard/status.h"

namespace reshard {

// Returns the value of a variable, or no value if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// Returns the share in the environment that a launcher of parallel jobs gives to each process. The
// first that applies counts: torchrun or msrun; Open MPI; PMI (MPICH and its kin); Slurm; an
// indexed job of Kubernetes; RANK and WORLD_SIZE; RANK_ID and RANK_SIZE. Errors: kInvalidArgument,
// naming the variables that are missing, wrong, or ambiguous.
Result<WorkerShare> FindWorkerShare(const Environment& environment);

// The environment of this process.
std::optional<std::string> ProcessEnvironment(const char* name);

// Returns `failed`, the error of a conversion, with advice if another run holds the target and a
// launcher has started this process as one of several without giving it a share. `given` is the
// share that the call has.
Status WithLauncherHint(const Status& failed, const std::optional<WorkerShare>& given,
                        const Environment& environment = ProcessEnvironment);

}  // namespace reshard

#endif  // RESHARD_SRC_FRONTEND_WORKER_SHARE_H_
