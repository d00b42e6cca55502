// Checks a target folder before the first write: its existing files, and whether a run may go on.
//
// Reads only. No state; any thread.
#ifndef RESHARD_SRC_JOB_TARGET_CHECK_H_
#define RESHARD_SRC_JOB_TARGET_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_spec.h"
#include "src/os/output_directory.h"
#include "src/record/manifest_codec.h"

namespace reshard {

struct TargetFindings {
  // Of a manifest of the same plan, which the run's own files join.
  std::vector<ManifestFile> joined;
  // The sources in the manifest.
  std::vector<ManifestSource> joined_sources = {};
  std::vector<SourceStamp> joined_stamps = {};
  // Files of manifests that go when the run publishes, and of sets before, as origin.jsonl tells.
  std::vector<ManifestFile> abandoned;
  bool has_manifest = false;  // one that the run replaces
};

// Checks each file of `spec`: an earlier file may be in its place, but no other entry, and its
// folder has to be writable. Checks that checksums belong to a manifest, and that no manifest of
// another set would break. With `replace`, earlier outputs and manifests may be replaced.
// Errors:
//   kAlreadyExists: lists the entries in the way
//   kMismatch: a manifest of the same plan was made from other sources
//   kIo
Result<TargetFindings> CheckTarget(const OutputDirectory& target, const JobSpec& spec,
                                   bool replace);

// Returns the free bytes in `folder`; no value if the file system does not say. Errors: kIo, also
// if fewer than `needed` bytes are free.
Result<std::optional<uint64_t>> CheckSpace(const OutputDirectory& folder, uint64_t needed);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_TARGET_CHECK_H_
