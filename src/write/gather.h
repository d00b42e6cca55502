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
// their first target byte, and write each of these bytes. Errors: those of SourceFiles; kInternal
// when the copies leave a gap. Then `out` is undefined.
Status Gather(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
              std::span<std::byte> out);

// Fills `out` with the bytes of the target file from `offset` on, literals and contents alike, and
// adds the source's side, and what was cast as it was before, to `digest`; it was begun for just
// these bytes. What casts lost is added to `lost`. Both may be null. Errors: as Gather.
Status FillTarget(SourceFiles& files, const TargetPlan& plan, uint64_t offset,
                  std::span<std::byte> out, ChunkDigest* digest, LostInCasts* lost);

// Bytes of the target file that a plan is of.
struct TargetBytes {
  const TargetPlan* plan = nullptr;
  ByteRange range;
  uint64_t end = 0;  // of those that will be filled at all
};

// Starts reading what FillTarget will take for these bytes, of each source file in the order in
// which they lie there where they are of several targets, and does not wait for it; but for runs
// with gaps too large to be read with them. Large pages (file_pages.h) are read whole where what
// will be filled behind these bytes goes on in them, as long as there is room for one of each file.
// Errors: those of SourceFiles.
Status PrefetchTargets(SourceFiles& files, std::span<const TargetBytes> targets);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_GATHER_H_
