// Writing one target file: a stream of chunks, gathered and written at the same time.
#ifndef RESHARD_SRC_EXEC_TARGET_WRITER_H_
#define RESHARD_SRC_EXEC_TARGET_WRITER_H_

#include <cstdint>
#include <functional>
#include <stop_token>

#include "reshard/status.h"
#include "src/exec/target_digest.h"
#include "src/os/staged_file.h"
#include "src/plan/target_plan.h"
#include "src/source/source_files.h"

namespace reshard {

// The most bytes of a chunk. A call of WriteTarget holds two.
inline constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

// Writes the whole of `plan` to `out`, a new file of its size, and does not finish it. The calling
// thread gathers and adds both sides to `digest`, unless it is null; a thread of its own writes.
// `progress`, which may be empty, is called with the bytes of each chunk that is written, by either
// thread. The call ends soon after `stop` is requested, at the end of a chunk. Errors: those of
// FillTarget and StagedFile, the first in time; kCancelled; kResourceExhausted.
Status WriteTarget(SourceFiles& files, const TargetPlan& plan, StagedFile& out,
                   TargetDigest* digest, const std::function<void(uint64_t)>& progress,
                   const std::stop_token& stop);

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_TARGET_WRITER_H_
