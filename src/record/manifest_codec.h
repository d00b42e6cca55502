// Manifest: the list of files that make up a finished target folder (SPEC.md), and the names in
// such a folder.
//
// Bytes to struct and back; no file is touched. Plain values; no locking. Digests are 32 lower-case
// hexadecimal digits, or empty where there is none.
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

// Returns where the part record of the target file at `path` lies, relative to the target folder.
std::string RecordPath(std::string_view path);
// Returns the path of the file whose part record is at `record_path`; nothing where no record is.
std::optional<std::string_view> RecordedPath(std::string_view record_path);

// Returns what of reshard's own lies at `path`, relative to a target folder, in words; nothing
// where target files may lie.
std::optional<std::string> ReservedFor(std::string_view path);

// Returns ok for the path of a target file that a manifest may hold (SPEC.md, "Limits").
// Errors: kInvalidArgument.
Status CheckTargetPath(std::string_view path);

inline constexpr uint64_t kMaxManifestBytes = uint64_t{512} << 20;

struct ManifestFile {
  std::string path;         // relative to the manifest's folder
  uint64_t size = 0;        // of an encrypted file: of what it decrypts to
  std::string digest = {};  // of its bytes; likewise
  // Of its part record, at RecordPath(path).
  uint64_t record_size = 0;
  std::string record_digest = {};
  std::optional<EncryptionMode> encryption = {};
  std::string key_check = {};  // KeyCheck of its key; empty where it is not known

  // The bytes that it has on the disk.
  uint64_t stored_size() const { return encryption ? EncryptedBytes(*encryption, size) : size; }

  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

struct ManifestSource {
  std::string path;  // relative to the source folder
  uint64_t size = 0;
  std::string digest = {};  // of what was taken from it (SourceDigest)

  friend bool operator==(const ManifestSource&, const ManifestSource&) = default;
};

// SourceStamp: what tells that a source file is still the one that a set was made of. Not its
// device, which is another number when the file system is mounted anew.
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
  // Of all files that the runs chose, an index included; those of schema 2 have none.
  std::vector<SourceStamp> stamps = {};
  std::vector<ManifestFile> files = {};

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Returns ok for a fingerprint that a manifest may hold: 1 to 64 lower-case hexadecimal digits.
// Errors: kInvalidArgument.
Status CheckFingerprint(std::string_view fingerprint);

// Returns the file's bytes, which depend on nothing but `manifest`; the order of its files, sources
// and stamps does not matter. Errors: kInvalidArgument for what no manifest may hold.
Result<std::string> EncodeManifest(Manifest manifest);

// Parses a whole file; `path` names it in messages. Any byte that is not as it was written is
// noticed. Errors: kCorrupt; kUnsupported for another schema_version.
Result<Manifest> ParseManifest(std::string_view bytes, const std::string& path);

// Returns the list of checksums for `xxhsum -c`: the files that have a digest of their bytes on the
// disk, sorted by path.
std::string EncodeChecksums(const Manifest& manifest);

// Returns what closes a manifest that begins with `bytes`: its last member, which is their digest.
std::string ManifestSeal(std::string_view bytes);

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_MANIFEST_CODEC_H_
