#include "src/exec/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/base/quote.h"
#include "src/base/status_macros.h"

namespace reshard {

bool IsManifestName(const std::string& name) {
  constexpr std::string_view kPart = "manifest_part";
  constexpr std::string_view kEnd = ".json";
  if (name == "manifest.json") return true;
  if (name.size() <= kPart.size() + kEnd.size() || !name.starts_with(kPart) ||
      !name.ends_with(kEnd)) {
    return false;
  }
  std::string_view stage = name;
  stage.remove_prefix(kPart.size());
  stage.remove_suffix(kEnd.size());
  return stage.find_first_not_of("0123456789") == std::string_view::npos;
}

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
    if (IsManifestName(file.path)) {
      return InvalidArgumentError(
          fmt::format("the target path {} is that of a manifest", Quote(file.path)));
    }
    if (previous != nullptr && *previous == file.path) {
      return InvalidArgumentError(
          fmt::format("the target path {} would be written twice", Quote(file.path)));
    }
    previous = &file.path;
  }
  return spec;
}

}  // namespace reshard
