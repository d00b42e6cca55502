// The part record of a target file that was written as its plan says.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_WRITE_TARGET_RECORD_H_
#define RESHARD_SRC_WRITE_TARGET_RECORD_H_

#include <map>
#include <string>

#include "reshard/status.h"
#include "src/plan/target_plan.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"
#include "src/write/target_digest.h"

namespace reshard {

// Paths, relative to the source folder, and sizes of source files.
using SourceNames = std::map<FileId, ManifestSource>;

// Returns what a record says of a content, but for its digest.
RecordedValue ValueOf(const Content& content);

// Hands the record's bytes to `sink`; without digests where `digest`, complete otherwise, is null.
// Errors: kInvalidArgument for a parameter that no part record may hold; those of `sink`.
Status EncodeTargetRecord(const TargetPlan& plan, const std::string& fingerprint,
                          const SourceNames& names, const TargetDigest* digest,
                          const PartRecordEncoder::Sink& sink);

}  // namespace reshard

#endif  // RESHARD_SRC_WRITE_TARGET_RECORD_H_
