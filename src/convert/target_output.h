// TargetOutput: where the target files of a plan go, and which parts of them this process writes.
#ifndef RESHARD_SRC_CONVERT_TARGET_OUTPUT_H_
#define RESHARD_SRC_CONVERT_TARGET_OUTPUT_H_

#include <cstddef>
#include <functional>
#include <set>
#include <stop_token>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/convert.h"
#include "reshard/resume.h"
#include "reshard/status.h"
#include "src/job/shard_job.h"
#include "src/job/target_job.h"
#include "src/os/output_directory.h"
#include "src/os/staged_file.h"
#include "src/os/storage_kind.h"

namespace reshard {

struct TargetShare {
  size_t target = 0;  // number in PlanReport::targets
  ByteRange range;    // mostly the whole file
};

// Functions take numbers of `parts` and are called by any thread, for each part once.
struct TargetOutput {
  std::vector<TargetShare> parts;
  // Whether the part need not be written, because it was.
  std::function<Result<bool>(size_t part, const std::stop_token& stop)> is_kept;
  std::function<Result<StagedFile>(size_t part, const WriteOptions& options)> create;
  // Makes durable what was written, then its record.
  std::function<Status(size_t part, StagedFile file, const OutputDirectory::ByteSource& record)>
      finish;
  StorageKind storage = {};
};

// Each whole file. `plan` and `job` must outlive it.
TargetOutput OutputOf(const PlanReport& plan, const TargetJob& job, Resume resume);

// The shard's parts that are not finished. As above.
TargetOutput OutputOf(const PlanReport& plan, const ShardJob& job);

}  // namespace reshard

#endif  // RESHARD_SRC_CONVERT_TARGET_OUTPUT_H_
