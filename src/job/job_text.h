// JobText: what a run is about to do, as it is kept in its job folder: by it another run knows
// whether it may go on with what the first one left.
//
// A plain value; no file is touched.
#ifndef RESHARD_SRC_JOB_JOB_TEXT_H_
#define RESHARD_SRC_JOB_JOB_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reshard/status.h"
#include "src/job/job_spec.h"

namespace reshard {

struct JobText {
  std::string tool_version;
  std::string manifest_name;
  bool checksum = true;
  uint64_t shards = 0;          // that do it together; 0: one run alone
  std::string source_strategy;  // digests, for the manifest; empty: none
  std::string target_strategy;
  std::string targets;  // paths and sizes, a line each
  std::string sources;  // the identities of the sources, a line each

  friend bool operator==(const JobText&, const JobText&) = default;
};

JobText JobTextOf(const JobSpec& spec);

std::string EncodeJobText(const JobText& job);

// Parses a whole file; `path` names it in messages. Errors: kCorrupt.
Result<JobText> ParseJobText(std::string_view text, const std::string& path);

// Returns what of a spec its job text tells, for the target folder `target_folder`: enough to
// publish what was staged. `path` names the text in messages. Errors: kCorrupt.
Result<JobSpec> SpecOf(const JobText& job, const std::string& target_folder,
                       const std::string& fingerprint, const std::string& path);

// Returns ok when a run of `own` may go on with what a run of `left` has staged in `path`; of its
// shards `outstanding` have not finished (looked at where their number is another one). Errors:
// kChanged for other sources, kMismatch for anything else.
Status CheckSameJob(const JobText& left, const JobText& own, const std::string& path,
                    const std::vector<uint64_t>& outstanding);

}  // namespace reshard

#endif  // RESHARD_SRC_JOB_JOB_TEXT_H_
