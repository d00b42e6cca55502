#include "src/job/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {

Result<JobSpec> CheckedSpec(JobSpec spec) {
  RESHARD_RETURN_IF_ERROR(CheckFingerprint(spec.fingerprint));
  if (!IsManifestName(spec.manifest_name)) {
    return InvalidArgumentError(fmt::format("{} is no manifest's name", Quote(spec.manifest_name)));
  }
  std::sort(spec.files.begin(), spec.files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  const std::string* previous = nullptr;
  for (const ManifestFile& file : spec.files) {
    RESHARD_RETURN_IF_ERROR(CheckTargetPath(file.path));
    if (previous != nullptr && *previous == file.path) {
      return InvalidArgumentError(
          fmt::format("the target path {} would be written twice", Quote(file.path)));
    }
    previous = &file.path;
  }
  return spec;
}

}  // namespace reshard
