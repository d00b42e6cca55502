// The part record of a target file out of the block records of its parts.
//
// No state; any thread.
#ifndef RESHARD_SRC_JOB_BLOCK_JOINING_H_
#define RESHARD_SRC_JOB_BLOCK_JOINING_H_

#include <string>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/job/staged_check.h"
#include "src/plan/target_plan.h"
#include "src/record/block_record.h"
#include "src/write/target_record.h"

namespace reshard {

// Returns the block record of `part` of a target file that was written as its plan says; without
// digests where `digest`, of that part, is null. Errors: kInvalidArgument for a parameter that no
// record may hold.
Result<std::string> EncodePartBlocks(const TargetPlan& plan, ByteRange part,
                                     const std::string& fingerprint, const SourceNames& names,
                                     const TargetDigest* digest);

// Returns the bytes of the part record that a run alone would have written of the file. `records`
// are those of all its parts, in file order; `read` is what was found in the file, and not looked
// at where they have no digests. `path` names the file in messages. Errors: kCorrupt when a block
// is not what its shard wrote; kInternal for parts that do not fit each other.
Result<std::string> JoinBlockRecords(const std::vector<BlockRecord>& records,
                                     const FileDigests& read, const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_BLOCK_JOINING_H_
