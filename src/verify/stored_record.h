// The part record of a target file, as it lies in a target folder now.
//
// All state is in the arguments; any number of threads may call.
#ifndef RESHARD_SRC_VERIFY_STORED_RECORD_H_
#define RESHARD_SRC_VERIFY_STORED_RECORD_H_

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "format/manifest/manifest_codec.h"
#include "format/manifest/part_record.h"
#include "reshard/byte_range.h"
#include "reshard/damage.h"
#include "reshard/status.h"
#include "src/verify/stored_file.h"

namespace reshard {

// Reads the part record that a manifest of the plan `plan` lists beside `file`, and returns its
// head; or nothing, and what is wrong with it in `damage`. Nothing that a record says counts before
// all of it is proved.
// Errors: those of SourceFiles; kCancelled.
Result<std::optional<PartRecordHead>> ReadStoredRecord(const StoredFolder& folder,
                                                       const std::string& plan,
                                                       const ManifestFile& file,
                                                       const std::stop_token& stop, Damage& damage);

// Names in `damage` the parameters whose content, or header, lies in one of `blocks`, which are
// sorted. The record has been read before. Errors: as ReadStoredRecord.
Status NameParameters(const StoredFolder& folder, const ManifestFile& file,
                      const std::vector<ByteRange>& blocks, const std::stop_token& stop,
                      Damage& damage);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_STORED_RECORD_H_
