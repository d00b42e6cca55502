// Gathering: bytes of a target, picked together from the sources as a plan says.
//
// Knows block copies only, no layouts. All state is in the caller's arguments; any number of
// threads may gather at the same time, from the same files and plan.
#ifndef RESHARD_SRC_WRITE_GATHER_H_
#define RESHARD_SRC_WRITE_GATHER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/plan/target_plan.h"
#include "src/tensor/block_copy.h"
#include "src/write/lost_in_casts.h"
#include "src/write/target_digest.h"

namespace reshard {

// Fills `out` with the bytes from target offset `offset` on. `copies` are disjoint, ordered by
// their first target byte, and write each byte. After an error the content of `out` is undefined.
// Errors: as SourceFiles; kInternal if the copies leave a gap.
Status Gather(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
              std::span<std::byte> out);

// Fills `out` with the bytes of the target file from `offset` on, literals and contents alike. Adds
// the source's side to `digest`, which was begun for these bytes: before a cast, the uncast bytes.
// Adds the values that casts lost to `lost`. Both may be null. Errors: as Gather.
Status FillTarget(SourceFiles& files, const TargetPlan& plan, uint64_t offset,
                  std::span<std::byte> out, ChunkDigest* digest, LostInCasts* lost);

// Bytes of the target file that a plan is of.
struct TargetBytes {
  const TargetPlan* plan = nullptr;
  ByteRange range;
  uint64_t end = 0;  // the end of the bytes that will be filled at all
};

// Starts to read the source bytes that FillTarget will take for these bytes, without waiting. Bytes
// of several targets are read in the order of each source file. Runs are left out if the gaps
// between them are too large to read.
//
// A large page (file_pages.h) is read whole if later bytes to be filled continue in it, as long as
// there is room for one page of each file. Errors: as SourceFiles.
Status PrefetchTargets(SourceFiles& files, std::span<const TargetBytes> targets);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_GATHER_H_
