// The logical digest of the bytes that block copies move.
#ifndef RESHARD_SRC_VERIFY_COPIED_DIGEST_H_
#define RESHARD_SRC_VERIFY_COPIED_DIGEST_H_

#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/digest/logical_digest.h"
#include "src/io/source_files.h"
#include "src/tensor/block_copy.h"
#include "src/verify/copy_rows.h"

namespace reshard {

// Adds what the bytes of `row` contribute to `sum`, at their places in the target. May be called
// under the fault guard.
void AddRow(const CopyRow& row, LogicalHasher& hasher, Digest128& sum);

// Adds what the bytes contribute to `sum` that `copies`, ordered by their first target byte, move
// to the range `part` of their target. `hasher` belongs to this thread. Errors: those of
// SourceFiles.
Status AddCopied(SourceFiles& files, const std::vector<BlockCopy>& copies, ByteRange part,
                 LogicalHasher& hasher, Digest128& sum);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_COPIED_DIGEST_H_
