// JobSpec: what a run is going to write, and under which name it is known. A plain value.
#ifndef RESHARD_SRC_EXEC_JOB_SPEC_H_
#define RESHARD_SRC_EXEC_JOB_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/manifest/manifest_codec.h"
#include "reshard/resume.h"
#include "reshard/status.h"

namespace reshard {

struct JobSpec {
  std::string target_folder;
  std::string fingerprint;  // of the plan for all ranks, so that runs for some of them join
  std::string manifest_name = "manifest.json";  // "manifest_partS.json" for stage S alone
  std::string source_strategy;                  // their digests, for the manifest; empty: none
  std::string target_strategy;
  std::vector<ManifestSource> sources;  // files that this run reads: path and size
  std::vector<ManifestFile> files;      // that this run writes: path and size
  // One opaque line for each source: when they are the same, so are the bytes that a run writes.
  std::vector<std::string> source_identities;
  bool checksum = true;  // the part records hold digests
  bool force = false;    // replace outputs and manifests that are there
  Resume resume = Resume::kNo;
  uint64_t shards = 0;  // how many do it together; 0: one run alone
};

// Returns the spec with its files sorted.
// Errors: kInvalidArgument for names, paths and fingerprints that no target folder may hold.
Result<JobSpec> CheckedSpec(JobSpec spec);

}  // namespace reshard

#endif  // RESHARD_SRC_EXEC_JOB_SPEC_H_
