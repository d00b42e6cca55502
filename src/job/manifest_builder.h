// ManifestBuilder: the manifest that part records add up to.
//
// One thread at a time; no file is touched.
#ifndef RESHARD_SRC_JOB_MANIFEST_BUILDER_H_
#define RESHARD_SRC_JOB_MANIFEST_BUILDER_H_

#include <string_view>
#include <utility>

#include "reshard/status.h"
#include "src/record/manifest_codec.h"
#include "src/record/part_record.h"

namespace reshard {

class ManifestBuilder {
 public:
  // `empty` has neither files nor sources.
  explicit ManifestBuilder(Manifest empty) : manifest_(std::move(empty)) {}

  // Adds `file` with what its part record says; beside path and size only the record's digest
  // counts, where it is known. Files come sorted by path.
  // Errors: kCorrupt for a record that is none; kMismatch for another one than expected, or for one
  // that disagrees with those before on a source. Then the file is not added.
  Status Add(const ManifestFile& file, std::string_view record);

  Manifest Finish();

 private:
  Manifest manifest_;
  SourceSummary sources_;
};

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_MANIFEST_BUILDER_H_
