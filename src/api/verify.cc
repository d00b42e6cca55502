#include "reshard/verify.h"

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"
#include "src/convert/counted_work.h"
#include "src/os/paths.h"
#include "src/verify/find_damage.h"
#include "src/verify/stored_set.h"

namespace reshard {

Result<DamageReport> Verify(const VerifyOptions& options) {
  return CatchOutOfMemory([&]() -> Result<DamageReport> {
    if (options.target.empty()) {
      return InvalidArgumentError("the path of the folder to verify is empty");
    }
    RESHARD_RETURN_IF_ERROR(CheckJobs(options.jobs));
    RESHARD_RETURN_IF_ERROR(CheckIsFolder(options.target));
    RESHARD_ASSIGN_OR_RETURN(const ManifestSet set, ManifestSet::Open(options.target));
    const CountedWork work(options.jobs, options.stop, options.progress, set.bytes());
    return FindDamage(set, work.work());
  });
}

}  // namespace reshard
