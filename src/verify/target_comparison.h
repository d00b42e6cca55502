// TargetComparison: compares target files byte by byte with their sources.
//
// The plan gives the expected value of each byte. The files need no manifest, and any program may
// have written them. One thread at a time uses an object, and the object starts threads that share
// the reading.
#ifndef RESHARD_SRC_VERIFY_TARGET_COMPARISON_H_
#define RESHARD_SRC_VERIFY_TARGET_COMPARISON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "reshard/verify.h"
#include "src/io/shared_work.h"
#include "src/io/source_files.h"
#include "src/plan/target_plan.h"

namespace reshard {

class TargetComparison {
 public:
  // `sources` are the files that plans name by FileId. `folder` is the target folder. Both must
  // outlive this object. `key` decrypts encrypted target files, and may be null.
  TargetComparison(SourceFiles& sources, const std::string& folder,
                   const std::shared_ptr<const EncryptionKey>& key, SharedWork work);
  TargetComparison(const TargetComparison&) = delete;
  TargetComparison& operator=(const TargetComparison&) = delete;

  // Takes a target file. Files are compared once there is enough work to share, so that few plans
  // are in memory at a time. Errors: as SourceFiles; kCorrupt if the path is not a regular file;
  // kCancelled.
  Status Add(PlanHandle plan);

  // Compares the rest.
  // Errors: as Add; kChanged when target files changed meanwhile.
  Status Finish();

  // After Finish: the differences, in the order in which the files were added.
  const std::vector<AgainstReport::FileDifference>& differences() const { return differences_; }
  // Files that are there.
  uint64_t found() const { return found_; }

 private:
  struct Pending {
    PlanHandle plan;
    FileId file = 0;
    uint64_t size = 0;  // of the file that is there
  };
  class Findings;

  // Returns the plan with the CRC that a file of `size` bytes states of itself, if it is right.
  Result<PlanHandle> PlanCrc(FileId file, uint64_t size, PlanHandle plan);
  Status CompareAll();
  Status ReadAhead(const Pending& pending, ByteRange part);
  Status ComparePiece(const Pending& pending, ByteRange piece, const std::stop_token& stop,
                      Findings& findings);

  SourceFiles& sources_;
  const std::string& folder_;
  const SharedWork work_;
  SourceFiles targets_;
  std::vector<Pending> pending_;
  uint64_t pending_bytes_ = 0;
  uint64_t found_ = 0;
  std::vector<AgainstReport::FileDifference> differences_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_TARGET_COMPARISON_H_
