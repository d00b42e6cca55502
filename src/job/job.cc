#include "src/job/job.h"

#include "src/base/out_of_memory.h"
#include "src/base/status_macros.h"

namespace reshard {

Status Job::FindEarlier() {
  RESHARD_ASSIGN_OR_RETURN(earlier_, TakePublished(target_, lock_, spec_));
  if (!earlier_.found) spec_.difference = earlier_.difference;
  return {};
}

void Job::LeaveProgress(const std::optional<WorkerShare>& worker,
                        const ProgressRecord& record) const {
  if (!folder_) return;
  static_cast<void>(CatchOutOfMemory(
      [&] { return folder_->folder().WriteOver(ProgressName(worker), EncodeProgress(record)); }));
}

Status Job::PutInPlace(PublishReport& report) {
  RESHARD_RETURN_IF_ERROR(folder_->Publish(target_));
  report.published = true;
  PruneAfter(*folder_, target_, report);
  return {};
}

}  // namespace reshard
