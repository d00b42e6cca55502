// Gathering: collects bytes of a target file from its sources, as a plan says.
//
// Knows block copies only, no layouts. Any number of threads may gather at the same time. They may
// share files, plan and losses; each needs an output buffer and a digest of its own.
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
#include "src/write/source_stretch.h"
#include "src/write/target_digest.h"

namespace reshard {

// Fills `out` with the bytes that the copies write from offset `offset` on: of a target file, or of
// an image. `copies` are disjoint, ordered by their first target byte, and write each byte. After
// an error the content of `out` is undefined. Errors: as SourceFiles; kInternal if the copies leave
// a gap.
Status Gather(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
              std::span<std::byte> out);

// Fills `out` with the bytes of the target file from `offset` on, literals and contents alike. Adds
// the source side to `digest`, which was begun for these bytes, and the images of cast contents.
// Adds the values that casts lost to `lost`. Both may be null. Errors: as Gather.
Status FillTarget(SourceFiles& files, const TargetPlan& plan, uint64_t offset,
                  std::span<std::byte> out, ChunkDigest* digest, LostInCasts* lost);

// Starts to read the source bytes that FillTarget will take for these bytes, without waiting. Bytes
// of several targets are read in the order of each source file. Copies whose runs have large gaps
// are left out.
//
// A large page (file_pages.h) is read whole if later bytes to be filled continue in it, as long as
// there is room for one page of each file. Errors: as SourceFiles.
Status PrefetchTargets(SourceFiles& files, std::span<const TargetBytes> targets);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_GATHER_H_
