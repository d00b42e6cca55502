// Damage: what in a target folder is not as its manifests say.
//
// Plain values; no locking.
//
// Implemented in src/verify (header only).
#ifndef RESHARD_DAMAGE_H_
#define RESHARD_DAMAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/byte_range.h"

namespace reshard {

enum class DamageKind {
  kManifest,  // it is damaged: what it lists was not looked at
  kRecord,    // a part record is missing or damaged: its file was compared without it
  kMissing,   // there is no such file
  kNoFile,    // something else is in its place, or on the way to it; links are not followed
  kSize,      // shorter or longer
  kContent,   // of the right size, but with other bytes
};

// A stretch of a file that has a digest of its own.
struct DamagedBlock {
  uint64_t index = 0;
  ByteRange range;
};

// One thing that is wrong.
struct Damage {
  // Relative to the target folder: of a target file, part record, manifest or list of checksums.
  std::string path;
  DamageKind kind = DamageKind::kContent;
  std::string detail = {};                 // what was expected and found, in words
  std::optional<DamagedBlock> block = {};  // the first that is bad or cut off, where that is known
  uint64_t bad_blocks = 0;
  // Those whose content in a bad block is not what it was; where no content is, those whose header
  // lies in a bad block. In file order, at most 20.
  std::vector<std::string> parameters = {};
  uint64_t parameter_count = 0;  // all of them
};

struct DamageReport {
  std::vector<std::string> manifests;  // their names, sorted
  uint64_t files = 0;                  // that the manifests list
  uint64_t bytes = 0;                  // that were read of them
  uint64_t files_without_digest = 0;   // of which nothing but the size is known
  std::vector<Damage> damages;         // by manifest, then by path
  std::vector<std::string> notes;      // lists of checksums that are missing
};

}  // namespace reshard

#endif  // RESHARD_DAMAGE_H_
