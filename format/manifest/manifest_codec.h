// Manifest: the list of files that make up a finished target folder (SPEC.md).
//
// Bytes to struct and back; no file is touched. Plain values; no locking.
#ifndef RESHARD_FORMAT_MANIFEST_MANIFEST_CODEC_H_
#define RESHARD_FORMAT_MANIFEST_MANIFEST_CODEC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"

namespace reshard {

inline constexpr uint64_t kMaxManifestBytes = uint64_t{16} << 20;

struct ManifestFile {
  std::string path;  // relative to the manifest's folder
  uint64_t size = 0;

  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct Manifest {
  std::string tool_version;  // of reshard
  std::string plan;          // the plan's fingerprint
  std::vector<ManifestFile> files;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Returns ok for a fingerprint that a manifest may hold: 1 to 64 lower-case hexadecimal digits.
// Errors: kInvalidArgument.
Status CheckFingerprint(std::string_view fingerprint);

// Returns ok for a path that a manifest may hold (SPEC.md, "Limits").
// Errors: kInvalidArgument.
Status CheckTargetPath(std::string_view path);

// Returns the file's bytes, which depend on nothing but `manifest`; the order of its files does not
// matter. Errors: kInvalidArgument for what no manifest may hold.
Result<std::string> EncodeManifest(Manifest manifest);

// Parses a whole file; `path` names it in messages.
// Errors: kCorrupt; kUnsupported for another schema_version.
Result<Manifest> ParseManifest(std::string_view bytes, const std::string& path);

}  // namespace reshard

#endif  // RESHARD_FORMAT_MANIFEST_MANIFEST_CODEC_H_
