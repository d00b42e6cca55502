// The part record of a target file, as it lies in a target folder now.
//
// All state is in the arguments; any number of threads may call.
#ifndef RESHARD_SRC_VERIFY_STORED_RECORD_H_
#define RESHARD_SRC_VERIFY_STORED_RECORD_H_

#include <optional>
#include <stop_token>
#include <string>

#include "reshard/damage.h"
#include "reshard/status.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "src/verify/stored_file.h"

namespace reshard {

// Feeds a file to `parser` and finishes it; stops at the first thing that is wrong with it.
// Errors: those of SourceFiles and of PartRecordParser; kCancelled.
Status FeedStored(SourceFiles& files, FileId file, const std::stop_token& stop,
                  PartRecordParser& parser);

struct StoredRecord {
  FileId file = 0;
  PartRecordHead head;
};

// Reads the part record that a manifest of the plan `plan` lists beside `file`, and returns its
// head and where it is; or nothing, and what is wrong with it in `damage`. Nothing that a record
// says counts before all of it is proved. Errors: those of SourceFiles; kCancelled.
Result<std::optional<StoredRecord>> ReadStoredRecord(const StoredFolder& folder,
                                                     const std::string& plan,
                                                     const ManifestFile& file,
                                                     const std::stop_token& stop, Damage& damage);

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_STORED_RECORD_H_
