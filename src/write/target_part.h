// TargetPart: a part of a target file that is being written; mostly the whole of it.
//
// Stays where it is, because the digest refers to the plan. Chunks are filled and written by any
// number of threads; the digest is used by one at a time, as ChunkFeed hands it on.
#ifndef RESHARD_SRC_WRITE_TARGET_PART_H_
#define RESHARD_SRC_WRITE_TARGET_PART_H_

#include <optional>
#include <utility>

#include "reshard/byte_range.h"
#include "src/os/staged_file.h"
#include "src/plan/target_plan.h"
#include "src/write/target_digest.h"

namespace reshard {

struct TargetPart {
  // `range` begins at a multiple of kDigestBlockBytes and ends at one or at the file's end; `file`
  // expects just these bytes.
  TargetPart(TargetPlan target_plan, ByteRange bytes, StagedFile staged, bool digests)
      : plan(std::move(target_plan)), range(bytes), file(std::move(staged)) {
    if (digests) digest.emplace(plan, range);
  }
  TargetPart(const TargetPart&) = delete;
  TargetPart& operator=(const TargetPart&) = delete;

  const TargetPlan plan;
  const ByteRange range;
  StagedFile file;
  std::optional<TargetDigest> digest;  // none when nothing is to be proved
};

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_TARGET_PART_H_
