// Manifest: the list of files that make up a finished target folder (SPEC.md).
//
// Bytes to struct and back; no file is touched. Plain values; no locking. Digests are 32 lower-case
// hexadecimal digits, or empty where there is none.
#ifndef RESHARD_SRC_RECORD_MANIFEST_CODEC_H_
#define RESHARD_SRC_RECORD_MANIFEST_CODEC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/record/manifest_paths.h"

namespace reshard {

inline constexpr uint64_t kMaxManifestBytes = uint64_t{512} << 20;

struct ManifestFile {
  std::string path;  // relative to the manifest's folder
  uint64_t size = 0;
  std::string digest = {};  // of its bytes
  // Of its part record, at RecordPath(path).
  uint64_t record_size = 0;
  std::string record_digest = {};

  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct ManifestSource {
  std::string path;  // relative to the source folder
  uint64_t size = 0;
  std::string digest = {};  // of what was taken from it (source_digest.h)

  friend bool operator==(const ManifestSource&, const ManifestSource&) = default;
};

struct Manifest {
  std::string tool_version;          // of reshard
  std::string plan;                  // the plan's fingerprint
  std::string source_strategy = {};  // digests of the layouts
  std::string target_strategy = {};
  std::vector<ManifestSource> sources = {};
  std::vector<ManifestFile> files = {};

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Returns ok for a fingerprint that a manifest may hold: 1 to 64 lower-case hexadecimal digits.
// Errors: kInvalidArgument.
Status CheckFingerprint(std::string_view fingerprint);

// Returns the file's bytes, which depend on nothing but `manifest`; the order of its files and of
// its sources does not matter. Errors: kInvalidArgument for what no manifest may hold.
Result<std::string> EncodeManifest(Manifest manifest);

// Parses a whole file; `path` names it in messages. Any byte that is not as it was written is
// noticed. Errors: kCorrupt; kUnsupported for another schema_version.
Result<Manifest> ParseManifest(std::string_view bytes, const std::string& path);

// Returns the list of checksums for `xxhsum -c`: the files that have a digest, sorted by path.
std::string EncodeChecksums(const Manifest& manifest);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_MANIFEST_CODEC_H_
