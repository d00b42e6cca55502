// Names in a target folder: of manifests, of what lies beside them, and which paths its files may
// have. Pure functions of strings; any thread.
#ifndef RESHARD_SRC_RECORD_MANIFEST_PATHS_H_
#define RESHARD_SRC_RECORD_MANIFEST_PATHS_H_

#include <optional>
#include <string>
#include <string_view>

#include "reshard/status.h"

namespace reshard {

inline constexpr std::string_view kRecordFolder = "part_records";

// Returns whether a manifest may have this name: "manifest.json", "manifest_partS.json".
bool IsManifestName(std::string_view name);

// Returns the name of the list of checksums beside the manifest of this name: "checksums.xxh128",
// "checksums_partS.xxh128".
std::string ChecksumsName(std::string_view manifest_name);

// Returns where the part record of the target file at `path` lies, relative to the target folder.
std::string RecordPath(std::string_view path);

// Returns what of reshard's own lies at `path`, relative to a target folder, in words; nothing
// where target files may lie.
std::optional<std::string> ReservedFor(std::string_view path);

// Returns ok for the path of a target file that a manifest may hold (SPEC.md, "Limits").
// Errors: kInvalidArgument.
Status CheckTargetPath(std::string_view path);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_MANIFEST_PATHS_H_
