// The part record of a target file that was written as its plan says.
//
// Pure functions; any thread.
#ifndef RESHARD_SRC_EXEC_TARGET_RECORD_H_
#define RESHARD_SRC_EXEC_TARGET_RECORD_H_

#include <map>
#include <string>

#include "format/manifest/manifest_codec.h"
#include "format/manifest/part_record.h"
#include "reshard/status.h"
#include "src/exec/target_digest.h"
#include "src/plan/target_plan.h"

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

#endif  // RESHARD_SRC_EXEC_TARGET_RECORD_H_
