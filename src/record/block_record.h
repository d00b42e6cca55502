// Block record: the bytes that one shard wrote of a target file that several shards write
// (SPEC.md).
//
// Plain values; no file is touched. Digests are 32 lower-case hexadecimal digits, or empty. Either
// all digests of a record are present or none.
#ifndef RESHARD_SRC_RECORD_BLOCK_RECORD_H_
#define RESHARD_SRC_RECORD_BLOCK_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/byte_range.h"
#include "reshard/status.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"

namespace reshard {

// The logical digest of the bytes taken from one source.
struct TakenDigest {
  uint64_t source = 0;  // its number in BlockRecord::sources
  std::string digest = {};

  friend bool operator==(const TakenDigest&, const TakenDigest&) = default;
};

// The part's bytes of a Value.
struct PartialValue {
  RecordedValue value;  // describes the whole Value; its digest covers the part's bytes
  std::vector<TakenDigest> taken = {};  // sorted by source
  uint64_t lost = 0;   // finite values of the part that a cast made infinite or NaN
  uint64_t zeros = 0;  // values of the part that a cast made zero

  friend bool operator==(const PartialValue&, const PartialValue&) = default;
};

struct BlockRecord {
  std::string plan = {};                 // the plan's fingerprint
  std::string path;                      // of the target file, relative to the target folder
  uint64_t size = 0;                     // of the target file
  ByteRange part;                        // from a block's beginning to a block's or the file's end
  std::vector<std::string> blocks = {};  // digests of the part's blocks; empty: no digests
  std::vector<ManifestSource> sources = {};  // of the whole file, without digests, sorted by path
  std::vector<PartialValue> values = {};     // with bytes in the part, in file order

  friend bool operator==(const BlockRecord&, const BlockRecord&) = default;
};

// Returns the record's bytes. Errors: kInvalidArgument for values that a block record cannot hold.
Result<std::string> EncodeBlockRecord(const BlockRecord& record);

// Parses a whole record; `path` names it in messages. Any byte that is not as it was written is
// noticed. Errors: kCorrupt; kUnsupported for another schema_version.
Result<BlockRecord> ParseBlockRecord(std::string_view bytes, const std::string& path);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_BLOCK_RECORD_H_
