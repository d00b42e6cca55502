// The bytes that block copies move to a range of their target: collected, or compared in place.
//
// Knows block copies only, no layouts, and shares no code with the writers of exec: what they wrote
// is held against it. All state is in the caller's arguments; any number of threads may call.
#ifndef RESHARD_SRC_VERIFY_COPIED_BYTES_H_
#define RESHARD_SRC_VERIFY_COPIED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "reshard/status.h"
#include "src/io/source_files.h"
#include "src/tensor/block_copy.h"

namespace reshard {

// Copies the bytes that `copies` move to target offset `offset` and on. `copies` are disjoint,
// ordered by their first target byte, and move each of these bytes.
// Errors: those of SourceFiles; kInternal when the copies leave a gap.
Status CollectBytes(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
                    std::span<std::byte> out);

// The bytes that differ, and the first of them.
struct ByteDifference {
  uint64_t count = 0;
  uint64_t target = 0;  // the first one's offset in the target
  FileId file = 0;      // where it comes from
  uint64_t source = 0;
  std::byte expected{};
  std::byte found{};

  // Adds what was found in other bytes of the same target.
  void Add(const ByteDifference& other);
};

// Compares `found` with the bytes that `copies` move to target offset `offset` and on, and adds
// what differs to `difference`. Errors: as CollectBytes.
Status CompareBytes(SourceFiles& files, std::span<const BlockCopy> copies, uint64_t offset,
                    std::span<const std::byte> found, ByteDifference& difference);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_COPIED_BYTES_H_
