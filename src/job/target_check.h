// What lies in a target folder before anything is written to it, and whether a run may go on.
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
  // What that manifest says of its sources.
  std::vector<ManifestSource> joined_sources = {};
  std::vector<SourceStamp> joined_stamps = {};
  // Files of manifests that go when the run publishes, and of sets before, as origin.jsonl tells.
  std::vector<ManifestFile> abandoned;
  bool has_manifest = false;  // one that the run replaces
};

// Checks, for each file of `spec`, that nothing but a file of before is in its place and that the
// folder on its way can be written to; that checksums are a manifest's; and that no manifest of
// another set would be broken. `replace`: outputs and manifests of before may be replaced.
// Errors: kAlreadyExists, listing what is in the way; kMismatch for a manifest of the plan that was
// made from other sources; kIo.
Result<TargetFindings> CheckTarget(const OutputDirectory& target, const JobSpec& spec,
                                   bool replace);

// Returns how many bytes are free in `folder`, or nothing where the file system does not say.
// Errors: kIo, when they are fewer than `needed`, too.
Result<std::optional<uint64_t>> CheckSpace(const OutputDirectory& folder, uint64_t needed);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_TARGET_CHECK_H_
