// JobSpec: what a run is going to write, and under which name it is known. A plain value.
#ifndef RESHARD_SRC_JOB_JOB_SPEC_H_
#define RESHARD_SRC_JOB_JOB_SPEC_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reshard/resume.h"
#include "reshard/status.h"
#include "src/os/memory_usage.h"
#include "src/record/manifest_codec.h"

namespace reshard {

struct JobSpec {
  std::string target_folder;
  std::string fingerprint;  // of the plan for all ranks, so that runs for some of them join
  std::string manifest_name = "manifest.json";  // "manifest_partS.json" for stage S alone
  std::string source_strategy;                  // their digests, for the manifest; empty: none
  std::string target_strategy;
  std::vector<ManifestSource> sources;  // files that this run reads: path and size
  std::vector<ManifestFile> files;      // that this run writes: path and size
  // A source file that earlier runs of the plan have read, too, but with another content; empty:
  // none is known.
  std::string other_source;
  // One opaque line for each source: when they are the same, so are the bytes that a run writes.
  std::vector<std::string> source_identities;
  bool checksum = true;  // the part records hold digests
  bool force = false;    // replace outputs and manifests that are there
  Resume resume = Resume::kNo;
  uint64_t shards = 0;  // how many do it together; 0: one run alone
  // Of a shard: whether the manifest in the target folder is that of this conversion, of these
  // sources. Asked once, while no other shard is at work; empty: it is not.
  std::function<Result<bool>()> is_published;
  MemoryMeter* meter = nullptr;  // looked at when much is held; has to live as long
};

// Returns the spec with its files sorted.
// Errors: kInvalidArgument for names, paths and fingerprints that no target folder may hold.
Result<JobSpec> CheckedSpec(JobSpec spec);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_JOB_SPEC_H_
