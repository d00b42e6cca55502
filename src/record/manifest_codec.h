// Manifest: the list of files that make up a finished target folder (SPEC.md), and the names in
// such a folder.
//
// Converts between bytes and struct; no file is touched. Plain values; no locking. Digests are 32
// lower-case hexadecimal digits, or empty if there is none.
#ifndef RESHARD_SRC_RECORD_MANIFEST_CODEC_H_
#define RESHARD_SRC_RECORD_MANIFEST_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/encryption.h"
#include "reshard/status.h"
#include "src/cipher/encrypted_block.h"

namespace reshard {

inline constexpr std::string_view kRecordFolder = "part_records";

// Returns whether a manifest may have this name: "manifest.json", "manifest_partS.json".
bool IsManifestName(std::string_view name);

// Returns the name of the list of checksums beside the manifest of this name: "checksums.xxh128",
// "checksums_partS.xxh128".
std::string ChecksumsName(std::string_view manifest_name);

// Returns the path of the part record of the target file at `path`, in the target folder.
std::string RecordPath(std::string_view path);
// Returns the path of the file whose part record is at `record_path`; no value if no record has
// this path.
std::optional<std::string_view> RecordedPath(std::string_view record_path);

// If a path in a target folder is reserved for reshard, returns its purpose in words; no value if
// target files may have it.
std::optional<std::string> ReservedFor(std::string_view path);

// Returns ok for the path of a target file that a manifest may hold (SPEC.md, "Limits").
// Errors: kInvalidArgument.
Status CheckTargetPath(std::string_view path);

inline constexpr uint64_t kMaxManifestBytes = uint64_t{512} << 20;

struct ManifestFile {
  std::string path;         // relative to the manifest's folder
  uint64_t size = 0;        // for an encrypted file, the size of the decrypted bytes
  std::string digest = {};  // of its bytes; likewise
  // Of its part record, at RecordPath(path).
  uint64_t record_size = 0;
  std::string record_digest = {};
  std::optional<TargetSpec::EncryptionMode> encryption = {};
  std::string key_check = {};  // KeyCheck of its key; empty if unknown

  // The bytes that it has on the disk.
  uint64_t stored_size() const { return encryption ? EncryptedBytes(*encryption, size) : size; }

  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct ManifestSource {
  std::string path;  // relative to the source folder
  uint64_t size = 0;
  std::string digest = {};  // of the bytes taken from it

  friend bool operator==(const ManifestSource&, const ManifestSource&) = default;
};

// SourceStamp: shows that a source file is still the one that a set was made from. It leaves out
// the device, whose number may change with a mount.
struct SourceStamp {
  std::string path;  // relative to the source folder
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t inode = 0;  // 0: runs that joined had different files there, so no file is the one

  friend bool operator==(const SourceStamp&, const SourceStamp&) = default;
};

struct Manifest {
  std::string tool_version;          // of reshard
  std::string plan;                  // the plan's fingerprint
  std::string source_strategy = {};  // digests of the layouts
  std::string target_strategy = {};
  std::vector<ManifestSource> sources = {};
  // Stamps of all files that the runs chose, an index included. Empty in schema 2.
  std::vector<SourceStamp> stamps = {};
  std::vector<ManifestFile> files = {};

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Returns ok for a fingerprint that a manifest may hold: 1 to 64 lower-case hexadecimal digits.
// Errors: kInvalidArgument.
Status CheckFingerprint(std::string_view fingerprint);

// Returns the file's bytes. They depend on `manifest` alone; the order of its files, sources and
// stamps does not matter. Errors: kInvalidArgument for values that a manifest cannot hold.
Result<std::string> EncodeManifest(Manifest manifest);

// Parses a whole file; `path` names it in messages. Any byte that is not as it was written is
// noticed. Errors: kCorrupt; kUnsupported for another schema_version.
Result<Manifest> ParseManifest(std::string_view bytes, const std::string& path);

// Returns the list of checksums for `xxhsum -c`: the files that have a digest of their bytes on the
// disk, sorted by path.
std::string EncodeChecksums(const Manifest& manifest);

// Returns the last member of a manifest that begins with `bytes`. This member is their digest.
std::string ManifestSeal(std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_MANIFEST_CODEC_H_
