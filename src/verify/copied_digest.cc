#include "src/verify/copied_digest.h"

#include "src/base/status_macros.h"

namespace reshard {

void AddRow(const CopyRow& row, LogicalHasher& hasher, Digest128& sum) {
  hasher.AddRuns(sum, {.bytes = row.bytes,
                       .size = row.length,
                       .position = row.target,
                       .count = row.count,
                       .bytes_stride = row.source_stride,
                       .position_stride = row.target_stride});
}

Status AddCopied(SourceFiles& files, const std::vector<BlockCopy>& copies, ByteRange part,
                 LogicalHasher& hasher, Digest128& sum) {
  for (const BlockCopy& copy : copies) {
    const ByteRange span = copy.TargetSpan();
    if (span.offset >= part.end()) break;
    if (span.end() <= part.offset) continue;
    const CopyRows rows(copy);
    RESHARD_RETURN_IF_ERROR(rows.ForEach(files, rows.SourceOf(part),
                                         [&](const CopyRow& row) { AddRow(row, hasher, sum); }));
  }
  return {};
}

}  // namespace reshard
