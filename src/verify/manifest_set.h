// ManifestSet: the manifests in a target folder.
//
// Immutable once open; any number of threads may read it.
#ifndef RESHARD_SRC_VERIFY_MANIFEST_SET_H_
#define RESHARD_SRC_VERIFY_MANIFEST_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "reshard/damage.h"
#include "reshard/status.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

struct ManifestSet {
  OutputDirectory root;                 // the folder that holds them
  std::vector<std::string> names;       // sorted
  std::vector<Manifest> manifests;      // those that are whole
  std::vector<Damage> damages = {};     // the others, and lists of checksums of other files
  std::vector<std::string> notes = {};  // lists of checksums that are missing

  // Reads all that there are in the folder at `path`.
  // Errors: kNotFound when there is none; kUnsupported for another schema version; kIo.
  static Result<ManifestSet> Open(const std::string& path);

  // Of all files that they list.
  uint64_t bytes() const;
};

}  // namespace reshard

#endif  // RESHARD_SRC_VERIFY_MANIFEST_SET_H_
