// The records of what was written as its plan says: the part record of a target file, the block
// record of a part of one, and the part record that block records add up to.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_WRITE_TARGET_RECORD_H_
#define RESHARD_SRC_WRITE_TARGET_RECORD_H_

#include <map>
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

// Hands the record's bytes to `sink`; without digests where `digest`, complete otherwise, is null;
// with those `found` in the file, unless it is null, instead of what was written; `lost` is what
// casts lost, sorted by name.
// Errors: kInvalidArgument for a parameter that no part record may hold; those of `sink`.
Status EncodeTargetRecord(const TargetPlan& plan, const std::string& fingerprint,
                          const SourceNames& names, const TargetDigest* digest,
                          const FileDigests* found, const std::vector<LostValues>& lost,
                          const PartRecordEncoder::Sink& sink);

// Returns the block record of `part` of a target file that was written as its plan says; without
// digests where `digest`, of that part, is null. Errors: kInvalidArgument for a parameter that no
// record may hold.
Result<std::string> EncodePartBlocks(const TargetPlan& plan, ByteRange part,
                                     const std::string& fingerprint, const SourceNames& names,
                                     const TargetDigest* digest,
                                     const std::vector<LostValues>& lost);

// Returns the bytes of the part record that a run alone would have written of the file. `records`
// are those of all its parts, in file order; `read` is what was found in the file, and not looked
// at where they have no digests; `with_crc` what is found there once its CRC is written, or null
// where it states none. `path` names the file in messages. Errors: kCorrupt when a block
// is not what its worker wrote; kInternal for parts that do not fit each other.
Result<std::string> JoinBlockRecords(const std::vector<BlockRecord>& records,
                                     const FileDigests& read, const FileDigests* with_crc,
                                     const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_TARGET_RECORD_H_
