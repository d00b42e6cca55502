// The records of files that were written by their plan: the part record of a target file, the block
// record of a part of a file, and the part record that joins block records.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_WRITE_TARGET_RECORD_H_
#define RESHARD_SRC_WRITE_TARGET_RECORD_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/plan/target_plan.h"
#include "src/record/block_record.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "src/write/target_digest.h"

namespace reshard {

// Paths, relative to the source folder, and sizes of source files.
using SourceNames = std::map<FileId, ManifestSource>;

// The facts of a record beside the plan. Valid while what it refers to is.
struct RecordFacts {
  const std::string& fingerprint;
  const SourceNames& names;
  const TargetDigest* digest;        // complete; null: the record has no digests
  std::span<const LostValues> lost;  // that casts lost, sorted by name
};

// Writes the record's bytes to `sink`. If `found` is not null, its digests, read back from the
// file, replace the computed ones.
// Errors: kInvalidArgument for a parameter that a part record cannot hold; as `sink`.
Status EncodeTargetRecord(const TargetPlan& plan, const RecordFacts& facts,
                          const FileDigests* found, const PartRecordEncoder::Sink& sink);

// Returns the block record of `part` of a target file that was written by its plan. The digest is
// the part's. Errors: kInvalidArgument for a parameter that a record cannot hold.
Result<std::string> EncodePartBlocks(const TargetPlan& plan, ByteRange part,
                                     const RecordFacts& facts);

// Returns the part record that a run alone would have written for the file. `records` are the block
// records of all its parts, in file order. `read` has the digests found in the file; it is ignored
// if the records have no digests. `with_crc` has the digests once the CRC is written; null if the
// file states no CRC. `path` names the file in messages.
// Errors:
//   kCorrupt: a block differs from its worker's record
//   kInternal: parts that do not fit each other
Result<std::string> JoinBlockRecords(const std::vector<BlockRecord>& records,
                                     const FileDigests& read, const FileDigests* with_crc,
                                     const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_TARGET_RECORD_H_
