#include "src/job/job.h"

#include "src/base/status_macros.h"

namespace reshard {

Status Job::FindEarlier() {
  RESHARD_ASSIGN_OR_RETURN(earlier_, TakePublished(target_, lock_, spec_));
  if (!earlier_.found) spec_.difference = earlier_.difference;
  return {};
}

Status Job::PutInPlace(PublishReport& report) {
  RESHARD_RETURN_IF_ERROR(folder_->Publish(target_));
  report.published = true;
  PruneAfter(*folder_, target_, report);
  return {};
}

}  // namespace reshard
