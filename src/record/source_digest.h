// The digests that manifests and part records state for source files: of what was taken from them.
//
// Move-only; one thread at a time.
#ifndef RESHARD_SRC_RECORD_SOURCE_DIGEST_H_
#define RESHARD_SRC_RECORD_SOURCE_DIGEST_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/box.h"
#include "reshard/dtype.h"
#include "reshard/status.h"
#include "src/digest/xxh3.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"

namespace reshard {

// What one target file took from one source file.
class SourceDigest {
 public:
  // Adds a parameter, in the order of the target file; `digest` is the logical digest of the part
  // that was taken.
  void Add(std::string_view name, DType dtype, const Shape& full_shape, std::string_view digest);

  std::string HexDigest() const { return lines_.HexDigest(); }

 private:
  Xxh3 lines_;
};

// What all target files of a manifest took from each source file.
class SourceSummary {
 public:
  // Adds what a part record says of its sources. Records come sorted by target path.
  // Errors: kMismatch when records disagree on a source's size.
  Status Add(const PartRecordHead& head);

  // Returns the sources, sorted by path; one without digests in a record has none.
  std::vector<ManifestSource> Sources() const;

 private:
  struct Source {
    uint64_t size = 0;
    bool has_digest = true;
    std::string few;  // lines, as long as they take less memory than their digest's state
    std::optional<Xxh3> lines;
  };
  std::map<std::string, Source> sources_;  // by path
};

}  // namespace reshard

#endif  // RESHARD_SRC_RECORD_SOURCE_DIGEST_H_
